//! A cluster of one node, from nothing: etcd, the API server, controllers, the scheduler, containerd, the kubelet, and
//! `gpucap-dra` as the chart runs it, but for the image: its program is a process of the node, with the rights
//! of the manifest's account and a token of this node.
//!
//! The card's own CDI devices, which NVIDIA's toolkit makes, are written here: they give a container the cards of the
//! stub. Everything ends with the enclosure; the control groups, which no namespace takes away, by [`end`].

use crate::cgroups::Cgroups;
use crate::container::PREFIX;
use crate::daemons::{ADDRESS, Daemons, LOCAL};
use crate::enclosure::{Enclosure, Userland};
use crate::kubectl::{Kubectl, configuration, show};
use crate::programs::Programs;
use gpucap_tests::{Build, Installation, Result, Scratch, Stop, chart};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The node.
pub(crate) const NODE: &str = "node1";
/// The driver.
pub(crate) const DRIVER: &str = "slice.gpucap.io";
/// How many cards the node has.
pub(crate) const CARDS: usize = 2;
/// The memory of each.
pub(crate) const MEMORY: u64 = 8 << 30;
/// Where the API server notes which pods are created, and when.
const AUDIT: &str = "/var/log/audit.json";
/// The release whose containerd and etcd are taken.
const RELEASE: Userland = Userland::Release("forky");

/// The cluster.
pub(crate) struct Cluster {
    pub(crate) daemons: Daemons,
    pub(crate) installation: Installation,
    kubectl: String,
    cgroups: Cgroups,
    pub(crate) scratch: Scratch,
}

static CLUSTER: Mutex<Option<Result<Cluster>>> = Mutex::new(None);

/// The cluster, for one test at a time; the first one starts it.
pub(crate) struct Held(MutexGuard<'static, Option<Result<Cluster>>>);

/// Gives the cluster to a test.
///
/// # Errors
/// Skips without its programs. One that did not start fails each test.
pub(crate) fn cluster() -> Result<Held> {
    let mut held = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
    match held.get_or_insert_with(Cluster::start) {
        Ok(_) => Ok(Held(held)),
        Err(stop) => Err(stop.clone()),
    }
}

/// Ends the cluster, and all that ran in it.
pub(crate) fn end() {
    CLUSTER.lock().unwrap_or_else(PoisonError::into_inner).take();
}

impl std::ops::Deref for Held {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        match self.0.as_ref() {
            Some(Ok(cluster)) => cluster,
            _ => unreachable!("a cluster that did not start is given to no test"),
        }
    }
}

impl Cluster {
    fn start() -> Result<Self> {
        let scratch = Scratch::new()?;
        let programs = Programs::find(&scratch)?;
        RELEASE.places("usr/bin/etcd")?;
        RELEASE.places("usr/lib/cni/ptp")?;
        let installation = Installation::new(&scratch.path().join("i"))?;
        let daemons = Daemons::new(Enclosure::new(RELEASE, "usr/bin/containerd")?)?;
        let cgroups = Cgroups(format!("{PREFIX}{}", std::process::id()));
        let kubectl = programs.path("kubectl");
        let cluster = Self { daemons, installation, kubectl, cgroups, scratch };
        let started = cluster.control(&programs).and_then(|()| cluster.node(&programs));
        let started = started.and_then(|()| cluster.kubectl().namespace("gpucap"));
        let started = started.and_then(|()| cluster.start_driver());
        let explain =
            |stop: Stop| stop.explained(|why| format!("{why}\n{}", cluster.daemons.logs()));
        started.map_err(explain)?;
        Ok(cluster)
    }

    /// `kubectl` of its administrator.
    pub(crate) fn kubectl(&self) -> Kubectl<'_> {
        Kubectl { daemons: &self.daemons, program: &self.kubectl }
    }

    /// What a command of the node prints, which has to succeed, as a part of the transcript.
    pub(crate) fn shows(&self, words: &[&str]) -> Result<String> {
        let printed = self.daemons.run(words)?.output()?.success()?.stdout;
        show(&format!("$ {}\n{printed}", words.join(" ")));
        Ok(printed)
    }

    /// When the API server got the request that created a pod.
    pub(crate) fn created(&self, namespace: &str, name: &str) -> Result<Option<String>> {
        let log = fs::read_to_string(self.daemons.enclosure.path(AUDIT))?;
        let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut own = events.filter(|event| {
            let object = &event["objectRef"];
            object["namespace"] == namespace && object["name"] == name
        });
        let time = own.next().map(|event| event["requestReceivedTimestamp"].clone());
        Ok(time.and_then(|time| time.as_str().map(str::to_owned)))
    }

    /// The control plane.
    fn control(&self, programs: &Programs) -> Result {
        let daemons = &self.daemons;
        let directory = daemons.enclosure.path("/run/kubernetes");
        fs::create_dir(&directory)?;
        let key = directory.join("account.key");
        let made = Command::new("openssl").args(["genrsa", "-out"]).arg(&key).arg("2048").output();
        made.map_err(|why| Stop::skip(format!("no openssl: {why}")))?;
        let mut tokens = String::new();
        for (user, name, groups) in [
            ("admin", "admin", "system:masters"),
            ("controllers", "controllers", "system:masters"),
            ("scheduler", "system:kube-scheduler", ""),
            // The node authorizer learns of a claim later than the kubelet does, which then waits.
            ("kubelet", "system:node:node1", "system:masters"),
        ] {
            tokens += &format!("token-of-{user},{name},{user},\"{groups}\"\n");
            configuration(daemons, user, &format!("token-of-{user}"))?;
        }
        fs::write(directory.join("tokens.csv"), tokens)?;
        let created = json!({
            "level": "Metadata", "verbs": ["create"], "resources": [{"resources": ["pods"]}],
        });
        let audit = json!({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
            "rules": [created, {"level": "None"}],
        });
        fs::write(directory.join("audit.json"), audit.to_string())?;
        // It is gone with the test, whatever of it was on disk.
        daemons.start("etcd", &["etcd", "--data-dir=/var/lib/etcd", "--unsafe-no-fsync"])?;
        let server = format!(
            "{} --etcd-servers=http://{LOCAL}:2379 --advertise-address={ADDRESS} \
             --secure-port=443 --cert-dir=/run/kubernetes --service-cluster-ip-range=10.96.0.0/16 \
             --service-account-issuer=https://{ADDRESS} \
             --service-account-key-file=/run/kubernetes/account.key \
             --service-account-signing-key-file=/run/kubernetes/account.key \
             --token-auth-file=/run/kubernetes/tokens.csv --authorization-mode=RBAC \
             --audit-policy-file=/run/kubernetes/audit.json --audit-log-path={AUDIT} \
             --kubelet-preferred-address-types=InternalIP",
            programs.path("kube-apiserver")
        );
        daemons.start("apiserver", &words(&server))?;
        crate::waited("the API server", || {
            let ready = self.kubectl().output(&["get", "--raw", "/readyz"])?;
            Ok((ready.stdout == "ok").then_some(()))
        })?;
        let controllers = format!(
            "{} --kubeconfig=/run/kubernetes/controllers.conf --leader-elect=false \
             --service-account-private-key-file=/run/kubernetes/account.key \
             --root-ca-file=/run/kubernetes/apiserver.crt",
            programs.path("kube-controller-manager")
        );
        daemons.start("controllers", &words(&controllers))?;
        let scheduler = format!(
            "{} --kubeconfig=/run/kubernetes/scheduler.conf --leader-elect=false",
            programs.path("kube-scheduler")
        );
        daemons.start("scheduler", &words(&scheduler))
    }

    /// containerd, its image, and the kubelet.
    fn node(&self, programs: &Programs) -> Result {
        let enclosure = &self.daemons.enclosure;
        self.start_containerd()?;
        self.make_groups()?;
        let configuration = json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "cgroupDriver": "cgroupfs", "cgroupsPerQOS": true, "enforceNodeAllocatable": [],
            "cgroupRoot": format!("/{}", self.cgroups.0), "failCgroupV1": false,
            "failSwapOn": false, "resolvConf": "", "makeIPTablesUtilChains": false,
            "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%",
                "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
            "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
            "maxPods": 250, "syncFrequency": "5s",
        });
        fs::write(enclosure.path("/run/kubernetes/kubelet.json"), configuration.to_string())?;
        let kubelet = format!(
            "{} --config=/run/kubernetes/kubelet.json --kubeconfig=/run/kubernetes/kubelet.conf \
             --hostname-override={NODE} --node-ip={ADDRESS}",
            programs.path("kubelet")
        );
        // It reads there which processes the kernel has killed, and not every machine lets root open it.
        if fs::File::open("/dev/kmsg").is_err() {
            enclosure.output(&["mount", "--bind", "/dev/null", "/dev/kmsg"])?;
        }
        self.daemons.start("kubelet", &words(&kubelet))?;
        let kubectl = self.kubectl();
        let is_ready = |node: &Value| {
            let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
            conditions.clone().any(|it| it["type"] == "Ready" && it["status"] == "True")
        };
        kubectl.wait(&["nodes"], "a node", |nodes| nodes.iter().any(is_ready)).map(drop)
    }

    /// Makes the group below which the kubelet has those of its pods, in each hierarchy.
    fn make_groups(&self) -> Result {
        let top = Path::new("/sys/fs/cgroup");
        if top.join("cgroup.controllers").exists() {
            return Ok(fs::create_dir(top.join(&self.cgroups.0))?);
        }
        for hierarchy in fs::read_dir(top)?.flatten() {
            // Links are second names.
            if hierarchy.file_type()?.is_dir() {
                fs::create_dir(hierarchy.path().join(&self.cgroups.0))?;
            }
        }
        Ok(())
    }

    /// Has the devices that bring a card itself show that card alone, as NVIDIA's toolkit does: to CUDA. The stub's NVML
    /// shows all cards.
    pub(crate) fn card_devices(&self, cards: usize) -> Result {
        let devices: Vec<_> = self
            .card_names_of(cards)?
            .iter()
            .map(|card| {
                let visible = format!("CUDA_VISIBLE_DEVICES={card}");
                let own = [format!("STUB_GPU_COUNT={cards}"), format!("STUB_GPU_MEM={MEMORY}")];
                json!({"name": card, "containerEdits": {"env": [&visible, &own[0], &own[1]]}})
            })
            .collect();
        let document = json!({"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": devices});
        let directory = self.daemons.enclosure.path("/etc/cdi");
        fs::create_dir_all(&directory)?;
        Ok(fs::write(directory.join("nvidia.json"), document.to_string())?)
    }

    /// The UUIDs of the node's cards, once they are published.
    pub(crate) fn card_names(&self) -> Result<Vec<String>> {
        self.card_names_of(CARDS)
    }

    fn card_names_of(&self, cards: usize) -> Result<Vec<String>> {
        let uuid = |device: &Value| {
            device["attributes"]["uuid"]["string"].as_str().unwrap_or_default().to_owned()
        };
        crate::waited("the devices of the node", || {
            let devices = self.devices()?;
            Ok((devices.len() == cards).then(|| devices.iter().map(uuid).collect()))
        })
    }

    /// Of the chart, what is the driver's, but for its pods.
    fn driver_objects() -> Result<Vec<Value>> {
        let of_driver = |object: &Value| {
            let name = &object["metadata"]["labels"]["app.kubernetes.io/name"];
            name == "gpucap-dra" && object["kind"] != "DaemonSet"
        };
        let mut objects = chart::rendered(&["--set", "dra.enabled=true"])?;
        objects.retain(of_driver);
        Ok(objects)
    }

    /// Ends the driver and takes away its objects: from now on the node has none.
    pub(crate) fn end_driver(&self) -> Result {
        self.daemons.end("driver", "TERM")?;
        self.kubectl().delete(&Self::driver_objects()?)
    }

    /// The manifests, and the driver with the account that they make.
    pub(crate) fn start_driver(&self) -> Result {
        let kubectl = self.kubectl();
        kubectl.apply(&Self::driver_objects()?)?;
        let token = kubectl.prints(&[
            "create",
            "token",
            "gpucap-dra",
            "--namespace=gpucap",
            "--bound-object-kind=Node",
            &format!("--bound-object-name={NODE}"),
        ])?;
        let configuration = configuration(&self.daemons, "driver", token.trim())?;
        self.cards(&[])?;
        let file = |path: std::path::PathBuf| path.display().to_string();
        let gpucap = self.installation.gpucap();
        let asks = file(gpucap.with_file_name("gpucap-driver"));
        let words = [
            "env",
            &format!("KUBECONFIG={configuration}"),
            &file(Build::dra()?),
            "--node",
            NODE,
            "--asks",
            &asks,
            "--command",
            &file(gpucap),
            "--interval",
            "1",
        ];
        self.daemons.start("driver", &words)?;
        self.card_devices(CARDS)
    }

    /// From now on the node's cards have these settings of the stub.
    pub(crate) fn cards(&self, settings: &[(&str, &str)]) -> Result {
        let (count, memory) = (CARDS.to_string(), MEMORY.to_string());
        let own = [("STUB_GPU_COUNT", count.as_str()), ("STUB_GPU_MEM", memory.as_str())];
        self.installation.driver(&[&own, settings].concat())
    }

    /// The devices that the node offers.
    pub(crate) fn devices(&self) -> Result<Vec<Value>> {
        let slices = self.kubectl().list(&["resourceslices"])?;
        let own = slices.iter().filter(|slice| slice["spec"]["driver"] == DRIVER);
        let devices =
            own.flat_map(|slice| slice["spec"]["devices"].as_array().into_iter().flatten());
        Ok(devices.cloned().collect())
    }

    /// The CDI files of claims: `/var/run` is a link, which leads elsewhere from here.
    pub(crate) fn cdi_files(&self) -> Result<Vec<String>> {
        let entries = fs::read_dir(self.daemons.enclosure.path("/run/cdi"))?.flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        Ok(names.filter(|name| name.ends_with(".json")).collect())
    }

    /// The claims in the driver's checkpoint, by UID.
    pub(crate) fn checkpoint(&self) -> Result<Vec<String>> {
        let path = format!("/var/lib/kubelet/plugins/{DRIVER}/checkpoint.json");
        let text = fs::read(self.daemons.enclosure.path(&path))?;
        let document: Value = serde_json::from_slice(&text).map_err(Stop::fail)?;
        let claims = document["claims"].as_object().cloned().unwrap_or_default();
        Ok(claims.into_iter().map(|(uid, _)| uid).collect())
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}
