//! Reads a limits file; refuses whatever is not exactly what a hook wrote.

use super::super::{crc32, source};
use super::document::{LimitsFile, MAX_BYTES, VERSION};
use super::entry::{Entry, Label};
use super::error::{ContentError, FileError};
use crate::config::{Config, ContextPrice, CorePriority, Excerpt, OPTIONS, Value, WithFile};
use crate::units::Amount;

impl LimitsFile {
    /// The file that has these bytes.
    ///
    /// # Errors
    /// Its checksum does not fit, its version is not ours, or it says something that is no limit.
    pub fn parse(bytes: &[u8]) -> Result<Self, FileError> {
        let whole = |why| FileError { why, held: Excerpt::new(bytes) };
        if bytes.len() > MAX_BYTES {
            return Err(whole(ContentError::TooLong));
        }
        let body = checked(bytes).ok_or_else(|| whole(ContentError::Checksum))?;
        let text = core::str::from_utf8(body).map_err(|_| whole(ContentError::NotUtf8))?;
        let mut lines = text.lines();
        let version = lines.next().and_then(|line| line.strip_prefix("gpucap-limits="));
        if version != Some(VERSION.to_string().as_str()) {
            return Err(whole(ContentError::Version));
        }
        let mut reader = Reader::default();
        for line in lines {
            reader
                .line(line)
                .map_err(|why| FileError { why, held: Excerpt::new(line.as_bytes()) })?;
        }
        reader.finish().map_err(whole)
    }
}

/// What stands before the last line, if that is its checksum.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let lines = bytes.strip_suffix(b"\n")?;
    let start = lines.iter().rposition(|&byte| byte == b'\n')?.checked_add(1)?;
    let (body, last) = lines.split_at_checked(start)?;
    // Compared as it would be written: no second spelling of a checksum is a checksum.
    (last == format!("crc32={:08x}", crc32::of(body)).as_bytes()).then_some(body)
}

/// The lines read so far.
#[derive(Default)]
struct Reader {
    source: Option<Label>,
    container: Option<Label>,
    open: Option<bool>,
    asked: Config,
    entries: Vec<Entry>,
    /// How many entries there were when a priority was read last.
    priority_of: Option<usize>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), ContentError> {
        let (key, value) = line.split_once('=').ok_or(ContentError::NotAPair)?;
        match key {
            "source" => once(&mut self.source, Label::new(value)),
            "container" => once(&mut self.container, Label::new(value)),
            "open" => once(&mut self.open, flag(value)?),
            "gpu" => self.gpu(value),
            "mem" => match parsed(value)? {
                Amount::Bytes(bytes) => once(&mut self.gpu_read()?.memory.bytes, bytes),
                Amount::OfDevice(part) => once(&mut self.gpu_read()?.memory.part, part),
            },
            "core" => once(&mut self.gpu_read()?.core, parsed(value)?),
            "core_max" => once(&mut self.gpu_read()?.core_max, parsed(value)?),
            "core_priority" => self.priority(parsed(value)?),
            "context" => once(&mut self.gpu_read()?.context, parsed::<ContextPrice>(value)?.0),
            _ => self.variable(key, value),
        }
    }

    fn variable(&mut self, name: &str, value: &str) -> Result<(), ContentError> {
        if !OPTIONS.iter().any(|row| row.name == name && row.with_file == WithFile::Lowers) {
            return Ok(());
        }
        if source::variables(&self.asked).any(|earlier| earlier.name() == name) {
            return Err(ContentError::Twice);
        }
        self.asked.set(name, value).map_err(|_| ContentError::Value)
    }

    fn gpu(&mut self, value: &str) -> Result<(), ContentError> {
        let entry = Entry::new(value.parse().map_err(|_| ContentError::Value)?);
        if self.entries.iter().any(|earlier| earlier.key.same(entry.key)) {
            return Err(ContentError::Twice);
        }
        self.entries.push(entry);
        Ok(())
    }

    fn priority(&mut self, priority: CorePriority) -> Result<(), ContentError> {
        let entry = self.gpu_read()?;
        entry.low_priority = priority == CorePriority::Low;
        let at = self.entries.len();
        match self.priority_of.replace(at) {
            Some(earlier) if earlier == at => Err(ContentError::Twice),
            _ => Ok(()),
        }
    }

    fn gpu_read(&mut self) -> Result<&mut Entry, ContentError> {
        self.entries.last_mut().ok_or(ContentError::WithoutGpu)
    }

    fn finish(self) -> Result<LimitsFile, ContentError> {
        let lends = |entry: &Entry| entry.core_max.is_some() || entry.low_priority;
        // An older library passes over these keys, and would then hold the container to no limit.
        if self.entries.iter().any(|entry| lends(entry) && entry.core.is_none()) {
            return Err(ContentError::WithoutShare);
        }
        Ok(LimitsFile {
            source: self.source.unwrap_or_default(),
            container: self.container.unwrap_or_default(),
            open: self.open.unwrap_or(false),
            asked: self.asked,
            entries: self.entries,
        })
    }
}

fn parsed<T: Value>(value: &str) -> Result<T, ContentError> {
    T::parse(value).map_err(|_| ContentError::Value)
}

fn flag(value: &str) -> Result<bool, ContentError> {
    match value {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err(ContentError::Value),
    }
}

fn once<T>(place: &mut Option<T>, value: T) -> Result<(), ContentError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(ContentError::Twice),
    }
}
