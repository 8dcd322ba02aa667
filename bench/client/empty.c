/* A library with nothing in it: what preloading costs by itself. */
