//! The cluster as a user meets it: `kubectl`, and documents as JSON.
//!
//! Everything here goes through the API server, as this user.

use crate::daemons::{ADDRESS, Daemons};
use crate::{LONGEST, expect, waited_within};
use gpucap_tests::{Actor, Output, Result, Run, Stop};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

/// `kubectl` of an administrator.
pub(crate) struct Kubectl<'a> {
    pub(crate) daemons: &'a Daemons,
    pub(crate) program: &'a str,
}

/// Prints a part of the transcript.
pub(crate) fn show(text: &str) {
    eprintln!("{}\n", text.trim_end());
}

/// Writes how a user of this name and token reaches the API server.
pub(crate) fn configuration(daemons: &Daemons, name: &str, token: &str) -> Result<String> {
    let path = format!("/run/kubernetes/{name}.conf");
    // The server has made both itself: an authority, and a certificate for this address.
    let authority = "/run/kubernetes/apiserver.crt";
    let server = format!("https://{ADDRESS}");
    let cluster = json!({"server": server, "certificate-authority": authority});
    let document = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": name}}],
    });
    fs::write(daemons.enclosure.path(&path), document.to_string())?;
    Ok(path)
}

impl Kubectl<'_> {
    /// A command of it.
    pub(crate) fn run<T: AsRef<str>>(&self, words: &[T]) -> Result<Run> {
        let start = [self.program, "--kubeconfig", "/run/kubernetes/admin.conf"];
        let words = words.iter().map(AsRef::as_ref);
        self.daemons.run(&start.into_iter().chain(words).collect::<Vec<_>>())
    }

    /// How a command ended.
    pub(crate) fn output<T: AsRef<str>>(&self, words: &[T]) -> Result<Output> {
        self.run(words)?.output()
    }

    /// What a command prints, which has to succeed.
    pub(crate) fn prints<T: AsRef<str>>(&self, words: &[T]) -> Result<String> {
        Ok(self.output(words)?.success()?.stdout)
    }

    /// What a command prints, which has to succeed, as a part of the transcript.
    pub(crate) fn shows(&self, words: &[&str]) -> Result<String> {
        let Output { stdout, stderr, .. } = self.output(words)?.success()?;
        show(&format!("$ kubectl {}\n{stdout}{stderr}", words.join(" ")));
        Ok(stdout)
    }

    /// Creates these, from a file of this name, as a part of the transcript.
    pub(crate) fn shows_apply(&self, file: &str, documents: &[Value]) -> Result {
        let printed = self.applied(documents)?;
        show(&format!("$ kubectl apply -f {file}\n{printed}"));
        Ok(())
    }

    /// A document, or a list of them.
    pub(crate) fn get(&self, words: &[&str]) -> Result<Value> {
        let text = self.prints(&[&["get", "-o", "json"], words].concat())?;
        serde_json::from_str(&text).map_err(Stop::fail)
    }

    /// The items of a list.
    pub(crate) fn list(&self, words: &[&str]) -> Result<Vec<Value>> {
        Ok(self.get(words)?["items"].as_array().cloned().unwrap_or_default())
    }

    /// Creates or changes these.
    pub(crate) fn apply(&self, documents: &[Value]) -> Result {
        self.applied(documents).map(drop)
    }

    fn applied(&self, documents: &[Value]) -> Result<String> {
        self.with(&["apply", "--validate=strict"], documents)
    }

    /// Deletes these, and waits until they are gone.
    pub(crate) fn delete(&self, documents: &[Value]) -> Result {
        self.with(&["delete"], documents).map(drop)
    }

    /// What a command prints that takes a file with these.
    fn with(&self, words: &[&str], documents: &[Value]) -> Result<String> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": documents});
        Ok(self.asked(words, &list)?.success()?.stdout)
    }

    /// How a command ended that takes a file with this.
    pub(crate) fn asked(&self, words: &[&str], document: &Value) -> Result<Output> {
        let path = "/run/kubernetes/documents.json";
        fs::write(self.daemons.enclosure.path(path), document.to_string())?;
        self.output(&[words, &["-f", path]].concat())
    }

    /// Waits until the list holds this.
    pub(crate) fn wait(
        &self,
        words: &[&str],
        what: &str,
        holds: impl FnMut(&[Value]) -> bool,
    ) -> Result<Vec<Value>> {
        self.wait_within(LONGEST, words, what, holds)
    }

    /// The same for what takes this long at the most.
    pub(crate) fn wait_within(
        &self,
        longest: Duration,
        words: &[&str],
        what: &str,
        mut holds: impl FnMut(&[Value]) -> bool,
    ) -> Result<Vec<Value>> {
        let mut last = Vec::new();
        let found = waited_within(longest, what, || {
            last = self.list(words)?;
            Ok(holds(&last).then(|| last.clone()))
        });
        found.map_err(|stop| {
            let seen = serde_json::to_string(&last).unwrap_or_default();
            stop.explained(|why| format!("{why}: {seen}\n{}", self.daemons.logs()))
        })
    }

    /// Waits until a pod of this namespace is in this phase, and all its containers are ready if that is `Running`.
    pub(crate) fn pod(&self, namespace: &str, name: &str, phase: &str) -> Result<Value> {
        let ready = |pod: &Value| {
            let containers = pod["status"]["containerStatuses"].as_array();
            containers.is_some_and(|list| list.iter().all(|it| it["ready"] == true))
        };
        let holds = |pods: &[Value]| {
            pods.iter().any(|pod| {
                let is_it = pod["metadata"]["name"] == name && pod["status"]["phase"] == phase;
                is_it && (phase != "Running" || ready(pod))
            })
        };
        let words = ["pods", "--namespace", namespace];
        let pods = self.wait(&words, &format!("pod {name} {phase}"), holds)?;
        let found = pods.into_iter().find(|pod| pod["metadata"]["name"] == name);
        found.ok_or_else(|| Stop::fail(name))
    }

    /// What a command prints in a container.
    pub(crate) fn exec(&self, namespace: &str, pod: &str, words: &[&str]) -> Result<String> {
        let start = ["exec", "--namespace", namespace, pod, "--"];
        self.prints(&[&start, words].concat())
    }

    /// An actor in a container, with a context on the card of this number.
    pub(crate) fn actor(&self, namespace: &str, pod: &str, container: &str) -> Result<Actor> {
        let words = ["exec", "-i", "--namespace", namespace, pod, "-c", container, "--", "/actor"];
        let mut actor = self.run(&words)?.start()?;
        actor.expect(&[("init", 0), ("context 0", 0)])?;
        Ok(actor)
    }

    /// Waits until an event of this pod says this.
    pub(crate) fn event(&self, namespace: &str, pod: &str, text: &str) -> Result<String> {
        let says = |event: &Value| {
            let is_it = event["involvedObject"]["name"] == pod;
            is_it && event["message"].as_str().is_some_and(|said| said.contains(text))
        };
        let words = ["events", "--namespace", namespace];
        let what = format!("an event of {pod} with `{text}`");
        let events = self.wait(&words, &what, |events| events.iter().any(says))?;
        let found = events.iter().find(|event| says(event));
        Ok(found.and_then(|event| event["message"].as_str()).unwrap_or_default().to_owned())
    }

    /// Makes a namespace with its service account.
    pub(crate) fn namespace(&self, name: &str) -> Result {
        self.apply(&[
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        ])?;
        let words = ["serviceaccounts", "--namespace", name];
        self.wait(&words, "a service account", |accounts| !accounts.is_empty()).map(drop)
    }

    /// Removes it with all that is in it, and waits until no claim of it is left.
    pub(crate) fn end_namespace(&self, name: &str) -> Result {
        self.prints(&["delete", "pods", "--all", "--namespace", name, "--grace-period=1"])?;
        self.prints(&["delete", "namespace", name, "--timeout=170s"])?;
        let left = self.list(&["resourceclaims", "--namespace", name])?;
        expect(left.is_empty(), || format!("claims are left: {left:?}"))
    }
}
