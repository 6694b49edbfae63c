//! The simulated machine as a World: every effect is counted and logged, can fail, and is then
//! executed. Does not contain: the content of the disk.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{FakeWorld, Op, USER, WORK, log_path, open, program};
use crate::server::{DocumentServer, ServerAddress, ServerError};
use crate::{
    Ancestry, CommandOutput, Confirmation, DirectoryWatch, ExternalCommand, FileStat, HeldLock,
    HttpRequest, HttpResponse, OpenFile, PathEntry, RunningProgram, World, WorldError,
};
use policyd_yaml::checksum::checksum;
use policyd_yaml::time::Timestamp;

/// Maximum number of links that are followed for one path.
const LINKS_MAX: usize = 8;

impl World for FakeWorld {
    fn now(&self) -> Timestamp {
        open(&self.machine).now
    }

    fn elapsed(&self) -> Duration {
        let tick = open(&self.machine).tick;
        self.advance(tick);
        open(&self.machine).elapsed
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration);
        let line = format!("sleep {}ms", duration.as_millis());
        open(&self.machine).log.push(line);
    }

    fn env(&self, name: &str) -> Option<String> {
        open(&self.machine).env.get(name).filter(|value| !value.is_empty()).cloned()
    }

    fn variables(&self) -> Vec<String> {
        open(&self.machine).env.keys().cloned().collect()
    }

    fn program(&self) -> Option<PathBuf> {
        Some(PathBuf::from("/usr/bin/policyd"))
    }

    fn working_folder(&self) -> PathBuf {
        PathBuf::from(WORK)
    }

    fn process_id(&self) -> u32 {
        1
    }

    fn user(&self) -> Option<u32> {
        Some(open(&self.machine).user.unwrap_or(USER))
    }

    fn ancestry(&self) -> Ancestry {
        let machine = open(&self.machine);
        Ancestry { processes: machine.ancestors.clone(), gap: machine.ancestry_gap }
    }

    /// Bytes that differ from call to call, and are the same in each simulation.
    fn random(&self, buffer: &mut [u8]) -> Result<(), WorldError> {
        let machine = &mut *open(&self.machine);
        for byte in buffer {
            machine.random = machine.random.wrapping_add(1);
            let [first, ..] = checksum(&[&machine.random.to_le_bytes()]);
            *byte = first;
        }
        Ok(())
    }

    fn confirm(&self, question: &str, _word: &str) -> Confirmation {
        let machine = &mut *open(&self.machine);
        machine.questions.push(question.to_owned());
        machine.confirmation.unwrap_or(Confirmation::Yes)
    }

    fn input_comes(&self, _within: Duration) -> bool {
        true
    }

    fn cores(&self) -> usize {
        1
    }

    fn entry(&self, path: &Path) -> Result<PathEntry, WorldError> {
        let put = open(&self.machine).entries.get(path).cloned();
        match put {
            Some(entry) => Ok(entry),
            None => self.stat(path).map(|_| PathEntry {
                link: None,
                owner: Some(USER),
                shared_write: false,
            }),
        }
    }

    fn stat(&self, path: &Path) -> Result<FileStat, WorldError> {
        let machine = open(&self.machine);
        let lost = machine.crash_at.is_some_and(|at| machine.ops > at);
        match (lost, machine.folds_case) {
            (true, _) => Err(WorldError::PowerLoss),
            (false, true) => machine.disk.stat_in_any_case(path),
            (false, false) => machine.disk.stat(path),
        }
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, WorldError> {
        let machine = open(&self.machine);
        let lost = machine.crash_at.is_some_and(|at| machine.ops > at);
        if lost {
            return Err(WorldError::PowerLoss);
        }
        let mut real = PathBuf::new();
        for part in path.components() {
            if part == Component::ParentDir {
                // A missing directory contains nothing.
                machine.disk.stat(&real)?;
                real.pop();
            } else {
                real.push(part);
            }
            for _ in 0..LINKS_MAX {
                let entry = machine.entries.get(&real);
                let Some(target) = entry.and_then(|it| it.link.clone()) else { break };
                real = target;
            }
        }
        machine.disk.stat(&real).map(|_| real)
    }

    fn owner_on_way(&self, root: &Path, path: &Path) -> Result<Option<u32>, WorldError> {
        let machine = open(&self.machine);
        let folders = path.ancestors().skip(1).take_while(|it| *it != root && it.starts_with(root));
        let is_link = |it: &Path| machine.entries.get(it).is_some_and(|it| it.link.is_some());
        if folders.clone().any(is_link) {
            return Err(WorldError::Io("is a symbolic link".to_owned()));
        }
        let folder = path.parent().filter(|it| machine.disk.stat(it).is_ok());
        Ok(folder.map(|path| machine.entries.get(path).and_then(|it| it.owner).unwrap_or(USER)))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn OpenFile>, WorldError> {
        self.on_disk(Op::Read, path, "", |disk, _| disk.read(path).map(|_| ()))?;
        Ok(Box::new(FakeFile { world: self.clone(), path: path.to_owned() }))
    }

    fn read(&self, path: &Path, bytes_max: usize) -> Result<Vec<u8>, WorldError> {
        let mut bytes = self.on_disk(Op::Read, path, "", |disk, _| disk.read(path))?;
        if bytes.len() > bytes_max {
            return Err(WorldError::TooLarge(u64::try_from(bytes.len()).unwrap_or(u64::MAX)));
        }
        let machine = &mut *open(&self.machine);
        machine.bytes_read =
            machine.bytes_read.saturating_add(u64::try_from(bytes.len()).unwrap_or(0));
        if machine.corrupt_reads > 0 {
            machine.corrupt_reads = machine.corrupt_reads.saturating_sub(1);
            if let Some(byte) = bytes.first_mut() {
                *byte = !*byte;
            }
        }
        Ok(bytes)
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>, WorldError> {
        self.on_disk(Op::List, folder, "", |disk, _| disk.list(folder))
    }

    fn create_folder(&self, path: &Path) -> Result<(), WorldError> {
        self.on_disk(Op::CreateFolder, path, "", |disk, _| disk.create_folder(path))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), WorldError> {
        let length = bytes.len().to_string();
        self.on_disk(Op::Write, path, &length, |disk, now| disk.write(path, bytes, now))
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), WorldError> {
        let length = bytes.len().to_string();
        self.on_disk(Op::Append, path, &length, |disk, now| disk.append(path, bytes, now))
    }

    fn publish(&self, path: &Path) -> Result<(), WorldError> {
        let user = self.user().unwrap_or(USER);
        self.on_disk(Op::Publish, path, "", |disk, _| disk.stat(path).map(|_| ()))?;
        let entry = PathEntry { link: None, owner: Some(user), shared_write: false };
        open(&self.machine).entries.insert(path.to_path_buf(), entry);
        Ok(())
    }

    fn copy_rights(&self, from: &Path, to: &Path) -> Result<(), WorldError> {
        self.on_disk(Op::CopyRights, from, &log_path(to), |disk, _| {
            disk.stat(from).and_then(|_| disk.stat(to)).map(|_| ())
        })
    }

    fn sync_file(&self, path: &Path) -> Result<(), WorldError> {
        let refused = self.op(Op::SyncFile, path, "");
        let disk = &mut open(&self.machine).disk;
        match refused {
            Ok(()) => disk.sync_file(path),
            // The file system does not sync: what was written is there until the power is lost.
            Err(WorldError::Unsupported) => Err(WorldError::Unsupported),
            Err(error) => {
                disk.spoil(path);
                Err(error)
            }
        }
    }

    fn sync_folder(&self, path: &Path) -> Result<(), WorldError> {
        self.on_disk(Op::SyncFolder, path, "", |disk, _| disk.sync_folder(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), WorldError> {
        self.on_disk(Op::Rename, from, &log_path(to), |disk, _| disk.rename(from, to))
    }

    fn exchange(&self, one: &Path, other: &Path) -> Result<(), WorldError> {
        if open(&self.machine).no_exchange {
            return Err(WorldError::Unsupported);
        }
        self.on_disk(Op::Exchange, one, &log_path(other), |disk, _| disk.exchange(one, other))
    }

    fn remove(&self, path: &Path) -> Result<(), WorldError> {
        self.on_disk(Op::Remove, path, "", |disk, _| disk.remove(path))
    }

    fn remove_folder(&self, path: &Path) -> Result<(), WorldError> {
        self.on_disk(Op::RemoveFolder, path, "", |disk, _| disk.remove_folder(path))
    }

    fn lock(&self, path: &Path, wait_max: Duration) -> Result<Box<dyn HeldLock>, WorldError> {
        self.on_disk(Op::Lock, path, "", |disk, now| disk.append(path, b"", now))?;
        if !open(&self.held).insert(path.to_owned()) {
            self.advance(wait_max);
            return Err(WorldError::Locked(format!(
                "`{}` is locked by another process",
                path.display()
            )));
        }
        Ok(Box::new(FakeLock { held: Arc::clone(&self.held), path: path.to_owned() }))
    }

    fn run(&self, command: &ExternalCommand) -> Result<CommandOutput, WorldError> {
        self.op(Op::Run, Path::new(&command.argv.join(" ")), "")?;
        let (answer, takes) = {
            let machine = &mut *open(&self.machine);
            machine.ran.push(command.clone());
            let scripts = &mut machine.scripts;
            let script =
                scripts.iter_mut().rev().find(|it| command.argv.starts_with(&it.argv_start));
            let answers = &mut script.ok_or(WorldError::NotFound)?.answers;
            let first = answers.pop_front().ok_or(WorldError::NotFound)?;
            if answers.is_empty() {
                answers.push_back(first.clone());
            }
            first
        };
        self.advance(takes.min(command.deadline));
        if takes > command.deadline { Err(WorldError::TimedOut) } else { answer }
    }

    fn start(&self, command: &ExternalCommand) -> Result<Box<dyn RunningProgram>, WorldError> {
        self.op(Op::Run, Path::new(command.argv.first().map_or("", String::as_str)), "started")?;
        let machine = &mut *open(&self.machine);
        machine.ran.push(command.clone());
        let play = program::next(&mut machine.plays, &command.argv).ok_or(WorldError::NotFound)?;
        Ok(Box::new(program::FakeProgram::new(self.clone(), play)))
    }

    fn request(&self, request: &HttpRequest) -> Result<HttpResponse, WorldError> {
        self.op(Op::Request, Path::new(&request.url), request.method.name())?;
        let machine = open(&self.machine);
        let response = machine.responses.get(&request.url).cloned();
        let response = response.unwrap_or(HttpResponse { status: 404, ..HttpResponse::default() });
        match response.body.len() > request.bytes_max {
            true => {
                Err(WorldError::TooLarge(u64::try_from(response.body.len()).unwrap_or(u64::MAX)))
            }
            false => Ok(response),
        }
    }

    fn watch(&self, _folders: &[PathBuf]) -> Result<Box<dyn DirectoryWatch>, WorldError> {
        Err(WorldError::Unsupported)
    }

    fn note_interrupts(&self) {}

    fn interrupted(&self) -> bool {
        let machine = open(&self.machine);
        machine.interrupt_at.is_some_and(|at| machine.now >= at)
    }

    fn kill_marked(&self, variable: &str, value: &str) -> Result<usize, WorldError> {
        open(&self.machine).log.push(format!("kill {variable}={value}"));
        Ok(0)
    }
    fn connect(
        &self,
        address: &ServerAddress,
        limit: Duration,
    ) -> Result<Box<dyn DocumentServer>, ServerError> {
        self.document_server(address, limit)
    }
}

/// An open file. Each read looks it up by name, which is sufficient for one process.
struct FakeFile {
    world: FakeWorld,
    path: PathBuf,
}

impl OpenFile for FakeFile {
    fn stat(&self) -> Result<FileStat, WorldError> {
        self.world.stat(&self.path)
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, WorldError> {
        // Opening counts as the read, but the read itself can fail, too.
        let machine = &mut *open(&self.world.machine);
        machine.refused(Op::ReadAt, &log_path(&self.path))?;
        let bytes = machine.disk.read(&self.path)?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = bytes.get(start..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        machine.bytes_read = machine.bytes_read.saturating_add(u64::try_from(count).unwrap_or(0));
        buffer.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        Ok(count)
    }
}

struct FakeLock {
    held: Arc<Mutex<BTreeSet<PathBuf>>>,
    path: PathBuf,
}

impl HeldLock for FakeLock {}

impl Drop for FakeLock {
    fn drop(&mut self) {
        open(&self.held).remove(&self.path);
    }
}
