//! Images and volumes that have something of their own where the hook works.

use crate::container::Container;
use crate::enforced::is_enforced;
use crate::refused::refuses;
use crate::runtime::Runtime;
use crate::{expect, trials_of};
use gpucap_tests::{Result, Stop};
use libtest_mimic::Trial;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

pub(crate) fn trials() -> Vec<Trial> {
    trials_of(&[
        ("links at our paths lead nowhere", links),
        ("a link to /etc stays in the container", link_to_etc),
        ("an image without /etc is given one", without_etc),
        ("fifos at our paths hold nothing up", fifos),
        ("a file at /.gpucap is replaced", file_for_directory),
        ("a directory with something in it for the list is refused", directory_for_file),
        ("a volume on /.gpucap is covered", volume_on_directory),
        ("a read-only volume on /.gpucap is covered", read_only_volume),
        ("a volume on the list keeps its own lines", volume_on_list),
        ("a copy of what the hook would show is not taken for it", copy_of_ours),
        ("a list without an end is refused", long_list),
    ])
}

fn links(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let outside = container.path("outside");
    fs::create_dir(&outside)?;
    fs::write(outside.join("list"), "untouched")?;
    let root = container.root();
    symlink(&outside, root.join(".gpucap"))?;
    symlink(outside.join("list"), root.join("etc/ld.so.preload"))?;
    is_enforced(&container)?;
    expect(fs::read_to_string(outside.join("list"))? == "untouched", || "written outside".into())?;
    expect(fs::read_dir(&outside)?.count() == 1, || "made outside".into())?;
    let kind = |path: &str| fs::symlink_metadata(root.join(path)).map(|it| it.file_type());
    expect(kind(".gpucap")?.is_dir() && kind("etc/ld.so.preload")?.is_file(), || {
        "a link was left, which could be taken away under the mount".into()
    })
}

fn link_to_etc(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let root = container.root();
    fs::rename(root.join("etc"), root.join("own"))?;
    symlink("../../../../../../../../own", root.join("etc"))?;
    is_enforced(&container)?;
    expect(root.join("own/ld.so.preload").exists(), || "the list lies elsewhere".into())
}

fn without_etc(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    fs::remove_dir(container.root().join("etc"))?;
    is_enforced(&container)
}

fn fifos(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    fifo(&container.root().join(".gpucap"))?;
    fifo(&container.root().join("etc/ld.so.preload"))?;
    is_enforced(&container)
}

fn file_for_directory(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    fs::write(container.root().join(".gpucap"), "mine")?;
    is_enforced(&container)
}

fn directory_for_file(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    fs::create_dir_all(container.root().join("etc/ld.so.preload/mine"))?;
    refuses(&container, "/etc/ld.so.preload in it cannot be set up")
}

fn volume_on_directory(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let volume = container.path("volume");
    fs::create_dir(&volume)?;
    fs::write(volume.join("limits"), "mine")?;
    is_enforced(&container.clone().mount(&volume, "/.gpucap", "rw"))?;
    expect(fs::read_dir(&volume)?.count() == 1, || "written to the volume".into())
}

fn read_only_volume(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let volume = container.path("volume");
    fs::create_dir(&volume)?;
    is_enforced(&container.clone().mount(&volume, "/.gpucap", "ro"))
}

fn volume_on_list(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let volume = container.path("list");
    fs::write(&volume, "# mine\n")?;
    let container = container.mount(&volume, "/etc/ld.so.preload", "rw");
    let seen = container.output(&["cat", "/etc/ld.so.preload"])?.success()?;
    expect(seen.stdout == "/.gpucap/libgpucap.so\n# mine\n", || seen.to_string())?;
    is_enforced(&container)?;
    expect(fs::read_to_string(&volume)? == "# mine\n", || "written to the volume".into())
}

fn copy_of_ours(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let seen = container.output(&["cat", "/.gpucap/limits"])?.success()?;
    let volume = container.path("volume");
    fs::create_dir(&volume)?;
    fs::write(volume.join("limits"), seen.stdout)?;
    fs::write(volume.join("ledger"), "")?;
    fs::write(volume.join("libgpucap.so"), "")?;
    fs::write(container.root().join("etc/ld.so.preload"), "/.gpucap/libgpucap.so\n")?;
    is_enforced(&container.mount(&volume, "/.gpucap", "ro"))
}

fn long_list(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    fs::write(container.root().join("etc/ld.so.preload"), vec![b'\n'; 1 << 20])?;
    refuses(&container, "has more than")
}

pub(crate) fn fifo(path: &Path) -> Result {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(Stop::fail)?;
    // SAFETY: a C string and a number.
    match unsafe { libc::mkfifo(path.as_ptr(), 0o666) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error().into()),
    }
}
