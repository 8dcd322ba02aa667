//! The way to the preload list: for every user of the container, and any other user of a volume of it, it stays.

use crate::container::Container;
use crate::enforced::{begin, is_enforced};
use crate::image::add;
use crate::peers::shell;
use crate::refused::refuses;
use crate::runtime::Runtime;
use crate::{expect, trials_of};
use gpucap_tests::{Result, Stop};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::ffi::{CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

pub(crate) fn trials() -> Vec<Trial> {
    trials_of(&[
        ("a directory on the way to the list that not all users enter is refused", not_entered),
        ("a directory on the way to the list that others may change is refused", changeable),
        ("a directory on the way to the list that is another user's is refused", of_others),
        ("an access control list on the way to the list is refused", access_list),
        ("an /etc that others may write is no reason to refuse", writable_etc),
        ("a volume at /etc is refused, and stays as it is", volume_at_etc),
        ("another container's unlink in a volume leaves the list", unlinked_list),
        ("another container's rmdir in a volume leaves /.gpucap", removed_directory),
        ("a volume for OpenCL that is shared with the host is refused", shared_opencl),
        ("a path that the runtime masks over ours is refused", masked),
        ("a container in which any user may mount is named, or refused", unshares),
        ("a root that is shared with the host leaves no mount there", shared_root),
        ("a volume for OpenCL is masked within the container alone", private_opencl),
    ])
}

fn set_mode(path: &Path, mode: u32) -> Result {
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
}

fn as_user(container: Container) -> Container {
    container.with(|config| config["process"]["user"] = json!({"uid": 1000, "gid": 1000}))
}

fn not_entered(runtime: Runtime) -> Result {
    for directory in ["", "etc", "own"] {
        let container = Container::new(runtime)?;
        let root = container.root();
        if directory == "own" {
            fs::create_dir(root.join("own"))?;
            fs::rename(root.join("etc"), root.join("own/etc"))?;
            symlink("own/etc", root.join("etc"))?;
        }
        set_mode(&root.join(directory), 0o700)?;
        let why = format!("hold for all its users: /{directory} cannot be entered");
        refuses(&as_user(container), &why)?;
    }
    Ok(())
}

fn changeable(runtime: Runtime) -> Result {
    for mode in [0o777, 0o775] {
        let container = Container::new(runtime)?;
        set_mode(&container.root(), mode)?;
        refuses(&as_user(container), "hold for all its users: / can be changed")?;
    }
    Ok(())
}

fn of_others(runtime: Runtime) -> Result {
    for directory in ["", "etc"] {
        let container = Container::new(runtime)?;
        chown(container.root().join(directory), Some(1000), None)?;
        let why = format!("hold for all its users: /{directory} does not belong to root");
        refuses(&as_user(container), &why)?;
    }
    // With users of its own, root is the user that is 0 there.
    let container = Container::new(runtime)?.with_users_of_its_own();
    chown(container.root(), Some(100_000), Some(100_000))?;
    chown(container.root().join("etc"), Some(100_000), Some(100_000))?;
    is_enforced(&container)
}

fn access_list(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let etc = CString::new(container.root().join("etc").into_os_string().into_vec());
    let etc = etc.map_err(Stop::fail)?;
    let (list, name) = (denying(1000), c"system.posix_acl_access");
    // SAFETY: C strings, and bytes of this length.
    let set =
        unsafe { libc::setxattr(etc.as_ptr(), name.as_ptr(), list.as_ptr().cast(), list.len(), 0) };
    if set < 0 {
        let why = std::io::Error::last_os_error();
        return Err(Stop::skip(format!("no access control list can be made here: {why}")));
    }
    refuses(&as_user(container), "/etc has an access control list")
}

/// An access control list that admits all users but this one, as the kernel is given it: a version, then tag, permissions and
/// user of each entry.
fn denying(user: u32) -> Vec<u8> {
    const ENTRIES: [(u16, u16); 5] = [(0x01, 7), (0x02, 0), (0x04, 5), (0x10, 5), (0x20, 5)];
    let entry = |(tag, mode): (u16, u16)| {
        let id = if tag == 0x02 { user } else { u32::MAX };
        [&tag.to_le_bytes()[..], &mode.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    2_u32.to_le_bytes().into_iter().chain(ENTRIES.into_iter().flat_map(entry)).collect()
}

fn writable_etc(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    set_mode(&container.root().join("etc"), 0o777)?;
    is_enforced(&container)
}

fn volume_at_etc(runtime: Runtime) -> Result {
    for how in ["rprivate", "rshared"] {
        let container = Container::new(runtime)?;
        let volume = container.path("volume");
        fs::create_dir(&volume)?;
        let shared = volume.display().to_string();
        let shared = format!("mount --bind '{shared}' '{shared}'; mount --make-shared '{shared}'");
        let container = container.prepare(shared).mount(&volume, "/etc", how);
        refuses(&container, "/etc is on another mount")?;
        expect(fs::read_dir(&volume)?.next().is_none(), || format!("{how}: a file was made"))?;
    }
    Ok(())
}

/// Whether the actor of a second process in it has the slice, after this was done outside.
fn holds_after(container: &Container, remove: impl FnOnce() -> std::io::Result<()>) -> Result {
    let mut first = begin(&container.run(&["/actor"])?)?;
    remove()?;
    let seen = shell(container, "cat /etc/ld.so.preload /.gpucap/limits /proc/self/maps")?;
    first.end()?;
    let holds = ["/.gpucap/libgpucap.so\n", "gpucap-limits=1", "r-xp"];
    expect(holds.iter().all(|part| seen.contains(part)), || seen.clone())?;
    let loaded = seen.lines().any(|line| line.contains("r-xp") && line.contains("libgpucap.so"));
    expect(loaded, || seen)
}

fn unlinked_list(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let list = container.path("list");
    fs::write(&list, "")?;
    let container = container.mount(&list, "/etc/ld.so.preload", "rw");
    holds_after(&container, || fs::remove_file(&list))
}

fn removed_directory(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let volume = container.path("volume");
    fs::create_dir(&volume)?;
    let container = container.mount(&volume, "/.gpucap", "rw");
    holds_after(&container, || fs::remove_dir(&volume))
}

/// A container with the ICD in a volume, and the volume.
fn opencl(runtime: Runtime, how: &str) -> Result<Container> {
    let container = Container::new(runtime)?;
    let volume = container.path("volume");
    fs::create_dir(&volume)?;
    fs::write(volume.join("nvidia.icd"), "libnvidia-opencl.so.1\n")?;
    let shared = volume.display().to_string();
    let shared = format!("mount --bind '{shared}' '{shared}'; mount --make-shared '{shared}'");
    Ok(container.prepare(shared).mount(&volume, "/etc/OpenCL/vendors", how))
}

fn shared_opencl(runtime: Runtime) -> Result {
    refuses(&opencl(runtime, "rshared")?, "shares its mounts with the host")
}

fn private_opencl(runtime: Runtime) -> Result {
    let container = opencl(runtime, "rprivate")?;
    let seen = container.output(&["cat", "/etc/OpenCL/vendors/nvidia.icd"])?.success()?;
    expect(!seen.stdout.contains("libnvidia"), || seen.to_string())?;
    let outside = fs::read_to_string(container.path("volume/nvidia.icd"))?;
    expect(outside.contains("libnvidia"), || outside)
}

fn masked(runtime: Runtime) -> Result {
    for path in ["/etc/ld.so.preload", "/.gpucap"] {
        let container = Container::new(runtime)?
            .with(|config| config["linux"]["maskedPaths"] = json!(["/proc/kcore", path]));
        refuses(&container, "would cover what the limit depends on")?;
    }
    let container = Container::new(runtime)?
        .with(|config| config["linux"]["maskedPaths"] = json!(["/proc/kcore"]));
    is_enforced(&container)
}

/// What the profile does in truth, and what the hook takes it to do.
fn unshares(runtime: Runtime) -> Result {
    // CLONE_NEWUSER, wherever it is among the flags.
    let flag = json!({
        "index": 0, "value": 0x1000_0000, "valueTwo": 0x1000_0000, "op": "SCMP_CMP_MASKED_EQ",
    });
    let profile = json!({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
        {"names": ["unshare", "clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": libc::ENOSYS},
        {"names": ["clone"], "action": "SCMP_ACT_ERRNO", "errnoRet": libc::EPERM, "args": [flag]},
    ]});
    let made = |profile: Option<&Value>| -> Result<Container> {
        let container = Container::new(runtime)?;
        add(&container.root(), Path::new("/usr/bin/unshare"), "bin/unshare")?;
        Ok(as_user(container.with(|config| {
            if let Some(profile) = profile {
                config["linux"]["seccomp"] = profile.clone();
            }
        })))
    };
    let (open, closed) = (made(None)?, made(Some(&profile))?);
    let unshare = ["unshare", "--user", "true"];
    if open.output(&unshare)?.code() != Some(0) {
        return Err(Stop::skip("this kernel lets ordinary users make no user namespaces"));
    }
    expect(closed.output(&unshare)?.code() != Some(0), || "the profile forbids nothing".into())?;
    let is_named = |container: &Container| container.log().contains("may make user namespaces");
    expect(is_named(&open) && !is_named(&closed), || open.log() + &closed.log())?;
    for container in [&open, &closed] {
        let config = container.path("node.json");
        let mut node = crate::container::json(&config)?;
        node["user_namespaces"] = json!("refuse");
        fs::write(&config, node.to_string())?;
    }
    refuses(&open, "allows no such container a limited GPU")?;
    closed.output(&["true"])?.success().map(drop)
}

fn shared_root(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?
        .with(|config| config["linux"]["rootfsPropagation"] = json!("shared"));
    let run = container.run(&["cat", "/etc/ld.so.preload"])?;
    let after = "\"$@\"; echo; cat /proc/self/mountinfo";
    let words = ["unshare", "--mount", "--propagation", "shared", "sh", "-c", after, "sh"];
    let seen = run.through(&words.map(OsStr::new)).output()?.success()?;
    let (within, host) = seen.stdout.split_once("\n\n").unwrap_or_default();
    expect(within == "/.gpucap/libgpucap.so" && host.contains(" shared:"), || seen.to_string())?;
    expect(!host.contains("/.gpucap") && !host.contains("ld.so.preload"), || seen.to_string())
}
