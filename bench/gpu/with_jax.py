"""JAX, one case per process: see frameworks.py."""

import json
import sys

import jax
import jax.numpy as jnp


def step():
    """Gradient descent on a least-squares problem, compiled; and the memory that JAX takes for its own."""
    given = jax.random.normal(jax.random.PRNGKey(1), (256, 64))
    wanted = given @ jnp.arange(64.0)
    loss = jax.jit(jax.value_and_grad(lambda w: jnp.mean((given @ w - wanted) ** 2)))
    weights, losses = jnp.zeros(64), []
    for _ in range(10):
        value, slope = loss(weights)
        weights = weights - 0.01 * slope
        losses.append(float(value))
    limit = (jax.devices()[0].memory_stats() or {}).get("bytes_limit", 0)
    # JAX takes part of the card's free memory in advance, or may grow up to it.
    return {"result": losses, "limited": {"on_gpu": jax.default_backend() == "gpu", "within": limit <= 4 << 30}}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
