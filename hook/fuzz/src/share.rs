//! What the bytes of a share file can reach in a process that reads its peers' limits.
//!
//! Only the node writes that file; a process that trusted it blindly would still end with a file that was cut short.

use gpucap_core::limits::file::Key;
use gpucap_core::page::share;
use gpucap_core::units::Share;
use gpucap_core::uuid::Uuid;

/// A share file, and what it says of three GPUs: one that the bytes name, one that they do not, and none.
pub fn share(bytes: &[u8]) {
    let lines = || bytes.split(|&byte| byte == b'\n').take(share::MAX_LINES);
    let named = lines().find_map(|line| {
        let (key, _) = std::str::from_utf8(line).ok()?.split_once(' ')?;
        match key.parse().ok()? {
            Key::Name(name) => Some(name.uuid),
            Key::Every => None,
        }
    });
    let others = [Uuid([0; 16]), Uuid([255; 16])];
    for gpu in others.into_iter().chain(named) {
        let Some(found) = share::limit_of(bytes, gpu) else { continue };
        assert!(bytes.len() <= share::MAX_BYTES, "{} bytes", bytes.len());
        assert!(found.share() <= found.most() && found.most() <= Share::FULL, "{found}");
        let written = share::write([(Key::Every, None), (Key::Name(gpu.gpu()), Some(found))]);
        assert_eq!(share::limit_of(written.as_bytes(), gpu), Some(found), "not read back");
    }
    // A line behind the others counts as far as there is room for it, whatever they are.
    let [first, _] = others;
    let last = [bytes, b"\n* 100\n"].concat();
    let has_room = last.len() <= share::MAX_BYTES && lines().count() < share::MAX_LINES;
    assert!(!has_room || share::limit_of(&last, first).is_some(), "the last line is not read");
}
