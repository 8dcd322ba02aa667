//! The fields of the kinds that we use, as the API of Kubernetes 1.30 has them: which there are, which must be.
//!
//! The API's own schemas are megabytes; what our manifests can get wrong is a misspelt field, one at the wrong depth, one
//! that is missing, or a number where a text belongs. A field that is not here is a fault: its first user adds it.

use serde_json::{Map, Value};

/// What a field holds.
#[derive(Clone, Copy)]
enum Type {
    Text,
    Number,
    Flag,
    /// Texts by name: labels, annotations, selectors, data.
    Texts,
    /// Quantities by name: a number or a text.
    Quantities,
    List(&'static Self),
    Object(&'static [Field]),
}

/// Name, whether it must be there, what it holds.
type Field = (&'static str, bool, Type);

use Type::{Flag, List, Number, Object, Quantities, Text, Texts};

const KINDS: &[(&str, &str, &[Field])] = &[
    ("v1", "Namespace", &[META]),
    ("v1", "ConfigMap", &[META, ("data", true, Texts)]),
    ("v1", "Pod", &[META, ("spec", true, Object(POD))]),
    ("apps/v1", "DaemonSet", &[META, ("spec", true, Object(DAEMON_SET))]),
    ("v1", "ServiceAccount", &[META]),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", &[META, ("rules", true, List(&Object(RULE)))]),
    (
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding",
        &[META, ("roleRef", true, Object(ROLE)), ("subjects", true, List(&Object(SUBJECT)))],
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy",
        &[META, ("spec", true, Object(POLICY))],
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding",
        &[
            META,
            (
                "spec",
                true,
                Object(&[("policyName", true, Text), ("validationActions", true, List(&Text))]),
            ),
        ],
    ),
    (
        "resource.k8s.io/v1",
        "DeviceClass",
        &[
            META,
            (
                "spec",
                true,
                Object(&[(
                    "selectors",
                    true,
                    List(&Object(&[("cel", true, Object(&[("expression", true, Text)]))])),
                )]),
            ),
        ],
    ),
    ("batch/v1", "Job", &[META, ("spec", true, Object(JOB))]),
    (
        "node.k8s.io/v1",
        "RuntimeClass",
        &[META, ("handler", true, Text), ("scheduling", false, Object(SCHEDULING))],
    ),
    (
        "kustomize.config.k8s.io/v1beta1",
        "Kustomization",
        &[("namespace", false, Text), ("resources", true, List(&Text))],
    ),
    ("kustomize.config.k8s.io/v1alpha1", "Component", &[("patches", true, List(&Object(PATCH)))]),
];
const RULE: &[Field] = &[
    ("apiGroups", true, List(&Text)),
    ("resources", true, List(&Text)),
    ("verbs", true, List(&Text)),
];
const ROLE: &[Field] = &[("apiGroup", true, Text), ("kind", true, Text), ("name", true, Text)];
const SUBJECT: &[Field] = &[("kind", true, Text), ("name", true, Text), ("namespace", true, Text)];
const NAMED_EXPRESSION: &[Field] = &[("name", true, Text), ("expression", true, Text)];
const POLICY: &[Field] = &[
    ("failurePolicy", true, Text),
    (
        "matchConstraints",
        true,
        Object(&[(
            "resourceRules",
            true,
            List(&Object(&[
                ("apiGroups", true, List(&Text)),
                ("apiVersions", true, List(&Text)),
                ("operations", true, List(&Text)),
                ("resources", true, List(&Text)),
            ])),
        )]),
    ),
    ("matchConditions", true, List(&Object(NAMED_EXPRESSION))),
    ("variables", true, List(&Object(NAMED_EXPRESSION))),
    ("validations", true, List(&Object(&[("expression", true, Text), ("message", true, Text)]))),
];
const PATCH: &[Field] = &[
    ("target", true, Object(&[("kind", true, Text), ("name", true, Text)])),
    ("patch", true, Text),
];
const META: Field = ("metadata", true, Object(NAMED));
const NAMED: &[Field] = &[
    ("name", true, Text),
    ("namespace", false, Text),
    ("labels", false, Texts),
    ("annotations", false, Texts),
];
const SCHEDULING: &[Field] =
    &[("nodeSelector", false, Texts), ("tolerations", false, List(&Object(TOLERATION)))];
const TOLERATION: &[Field] = &[
    ("key", false, Text),
    ("operator", false, Text),
    ("value", false, Text),
    ("effect", false, Text),
];
const SELECTOR: &[Field] = &[("matchLabels", true, Texts)];
const DAEMON_SET: &[Field] = &[
    ("selector", true, Object(SELECTOR)),
    ("template", true, Object(TEMPLATE)),
    (
        "updateStrategy",
        false,
        Object(&[
            ("type", true, Text),
            ("rollingUpdate", false, Object(&[("maxUnavailable", false, Number)])),
        ]),
    ),
];
const JOB: &[Field] = &[
    ("template", true, Object(TEMPLATE)),
    ("backoffLimit", false, Number),
    ("ttlSecondsAfterFinished", false, Number),
];
const TEMPLATE: &[Field] = &[("metadata", true, Object(LABELLED)), ("spec", true, Object(POD))];
const LABELLED: &[Field] = &[("labels", true, Texts), ("annotations", false, Texts)];
const POD: &[Field] = &[
    ("containers", true, List(&Object(CONTAINER))),
    ("initContainers", false, List(&Object(CONTAINER))),
    ("volumes", false, List(&Object(VOLUME))),
    ("nodeSelector", false, Texts),
    ("tolerations", false, List(&Object(TOLERATION))),
    ("runtimeClassName", false, Text),
    ("schedulerName", false, Text),
    ("restartPolicy", false, Text),
    // Since 1.31, as the pods of a newer API have it.
    ("resourceClaims", false, List(&Object(CLAIM))),
    ("automountServiceAccountToken", false, Flag),
    ("serviceAccountName", false, Text),
    ("hostPID", false, Flag),
];
const CLAIM: &[Field] = &[("name", true, Text), ("resourceClaimTemplateName", true, Text)];
const CONTAINER: &[Field] = &[
    ("name", true, Text),
    ("image", true, Text),
    ("command", false, List(&Text)),
    ("args", false, List(&Text)),
    (
        "env",
        false,
        List(&Object(&[
            ("name", true, Text),
            ("value", false, Text),
            (
                "valueFrom",
                false,
                Object(&[("fieldRef", true, Object(&[("fieldPath", true, Text)]))]),
            ),
        ])),
    ),
    (
        "resources",
        true,
        Object(&[
            ("limits", true, Quantities),
            ("requests", false, Quantities),
            ("claims", false, List(&Object(&[("name", true, Text)]))),
        ]),
    ),
    (
        "readinessProbe",
        false,
        Object(&[
            ("exec", false, Object(&[("command", true, List(&Text))])),
            ("tcpSocket", false, Object(&[("port", true, Text)])),
            ("periodSeconds", false, Number),
        ]),
    ),
    ("ports", false, List(&Object(&[("name", true, Text), ("containerPort", true, Number)]))),
    ("securityContext", false, Object(SECURITY)),
    ("volumeMounts", false, List(&Object(MOUNT))),
];
const SECURITY: &[Field] = &[
    ("privileged", false, Flag),
    ("runAsUser", false, Number),
    ("runAsNonRoot", false, Flag),
    ("allowPrivilegeEscalation", true, Flag),
    ("readOnlyRootFilesystem", true, Flag),
    ("capabilities", true, Object(&[("drop", true, List(&Text)), ("add", false, List(&Text))])),
    ("seccompProfile", true, Object(&[("type", true, Text)])),
    ("appArmorProfile", false, Object(&[("type", true, Text)])),
    ("seLinuxOptions", false, Object(&[("type", true, Text)])),
];
const MOUNT: &[Field] =
    &[("name", true, Text), ("mountPath", true, Text), ("readOnly", false, Flag)];
const VOLUME: &[Field] = &[
    ("name", true, Text),
    ("hostPath", false, Object(&[("path", true, Text), ("type", true, Text)])),
    ("configMap", false, Object(&[("name", true, Text)])),
    ("emptyDir", false, Object(&[("medium", true, Text)])),
];

/// What is wrong with the form of an object, each with its place.
pub(crate) fn faults(object: &Value) -> Vec<String> {
    let (version, kind) = (object["apiVersion"].as_str(), object["kind"].as_str());
    let known = KINDS.iter().find(|it| (Some(it.0), Some(it.1)) == (version, kind));
    let (Some((.., fields)), Some(map)) = (known, object.as_object()) else {
        return vec![format!("{version:?} {kind:?} is no kind of ours")];
    };
    let mut rest = map.clone();
    rest.retain(|name, _| !["apiVersion", "kind"].contains(&name.as_str()));
    let mut found = Vec::new();
    fields_of(&rest, fields, "", &mut found);
    found
}

fn fields_of(map: &Map<String, Value>, fields: &[Field], at: &str, found: &mut Vec<String>) {
    for (name, value) in map {
        match fields.iter().find(|field| field.0 == name) {
            Some((.., kind)) => value_of(value, *kind, &format!("{at}.{name}"), found),
            None => found.push(format!("{at}.{name}: no such field")),
        }
    }
    let missing = fields.iter().filter(|(name, must, _)| *must && !map.contains_key(*name));
    found.extend(missing.map(|(name, ..)| format!("{at}.{name}: is missing")));
}

fn value_of(value: &Value, kind: Type, at: &str, found: &mut Vec<String>) {
    let every = |holds: fn(&Value) -> bool| {
        value.as_object().is_some_and(|map| !map.is_empty() && map.values().all(holds))
    };
    let holds = match (kind, value) {
        (Object(fields), Value::Object(map)) => return fields_of(map, fields, at, found),
        (List(inner), Value::Array(list)) if !list.is_empty() => {
            let places = (0..).map(|index: usize| format!("{at}[{index}]"));
            return places.zip(list).for_each(|(at, it)| value_of(it, *inner, &at, found));
        }
        (Text, _) => value.is_string(),
        (Number, _) => value.is_u64(),
        (Flag, _) => value.is_boolean(),
        (Texts, _) => every(Value::is_string),
        (Quantities, _) => every(|it| it.is_string() || it.is_u64()),
        (Object(_) | List(_), _) => false,
    };
    if !holds {
        found.push(format!("{at}: not of its type: {value}"));
    }
}
