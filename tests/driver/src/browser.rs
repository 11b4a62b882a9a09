//! Controls a headless Chromium as a user would: opens a page, presses keys, moves the mouse.
//!
//! Commands travel as JSON texts over two pipes (`--remote-debugging-pipe`), each terminated by a
//! zero byte. Faults of the page are collected from the start: exceptions, errors in its log, and
//! requests to anything but local files.

use super::system;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Time limit of an answer. It is long because a machine under test is slow.
const PATIENCE: Duration = Duration::from_secs(60);

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

pub fn is_here() -> bool {
    NAMES.iter().any(|name| system::on_path(name))
}

pub struct Browser {
    child: Child,
    to: PipeWriter,
    from: Receiver<Value>,
    session: Value,
    next: u64,
    profile: PathBuf,
    pub faults: Vec<String>,
    loaded: bool,
}

impl Browser {
    /// Starts the browser with a window of `width` by `height` pixels. Returns a message if no
    /// browser is installed, or if it cannot be started.
    pub fn start(profile: PathBuf, width: u32, height: u32) -> Result<Browser, String> {
        let name = NAMES.iter().find(|name| system::on_path(name)).ok_or("there is no Chromium")?;
        let _ = std::fs::remove_dir_all(&profile);
        let pipe = || std::io::pipe().map_err(|e| format!("no pipe: {e}"));
        let ((input, to), (output, from)) = (pipe()?, pipe()?);
        let (input, from_child) = (input, from);
        let (read, write) = (input.as_raw_fd(), from_child.as_raw_fd());
        let mut command = Command::new(name);
        command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]);
        command.args([
            "--disable-extensions",
            "--disable-dev-shm-usage",
            "--remote-debugging-pipe",
        ]);
        command.args(["--disable-background-networking", "--disable-component-update"]);
        command.arg(format!("--user-data-dir={}", profile.display()));
        command.arg(format!("--window-size={width},{height}"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.process_group(0);
        // SAFETY: the closure only makes calls that are safe between fork and exec, on two
        // descriptors that are open.
        unsafe {
            command.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // Move both descriptors out of the way first, because either may itself be 3 or 4.
                let (read, write) =
                    (libc::fcntl(read, libc::F_DUPFD, 20), libc::fcntl(write, libc::F_DUPFD, 20));
                if libc::dup2(read, 3) < 0 || libc::dup2(write, 4) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                libc::close(read);
                libc::close(write);
                Ok(())
            });
        }
        let child = command.spawn().map_err(|e| format!("cannot start {name}: {e}"))?;
        drop((input, from_child));
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(output);
            let mut line = Vec::new();
            while lines.read_until(0, &mut line).is_ok_and(|n| n > 0) {
                line.pop();
                let Ok(value) = serde_json::from_slice(&line) else { break };
                if sender.send(value).is_err() {
                    break;
                }
                line.clear();
            }
        });
        let mut browser = Browser {
            child,
            to,
            from: receiver,
            session: Value::Null,
            next: 0,
            profile,
            faults: Vec::new(),
            loaded: false,
        };
        let target = browser.ask("Target.createTarget", json!({"url": "about:blank"}))?;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        browser.session = browser.ask("Target.attachToTarget", attach)?["sessionId"].clone();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.ask(&format!("{domain}.enable"), json!({}))?;
        }
        Ok(browser)
    }

    /// Sends a command and waits for the answer. Returns a message if the browser reports an error
    /// or does not answer in time.
    pub fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": params});
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        let text = message.to_string() + "\0";
        self.to.write_all(text.as_bytes()).map_err(|e| format!("{method}: {e}"))?;
        let asked = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(asked.elapsed());
            let answer = self.from.recv_timeout(left).map_err(|e| format!("{method}: {e}"))?;
            if answer["id"] == self.next {
                return match answer.get("error") {
                    Some(error) => Err(format!("{method}: {error}")),
                    None => Ok(answer["result"].clone()),
                };
            }
            self.note(&answer);
        }
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Page.loadEventFired" => self.loaded = true,
            "Runtime.exceptionThrown" => {
                self.faults.push(format!("exception: {}", params["exceptionDetails"]));
            }
            "Log.entryAdded" if params["entry"]["level"] == "error" => {
                self.faults.push(format!("log: {}", params["entry"]["text"]));
            }
            "Runtime.consoleAPICalled" if params["type"] == "error" => {
                self.faults.push(format!("console: {}", params["args"]));
            }
            "Network.requestWillBeSent" => {
                let url = params["request"]["url"].as_str().unwrap_or_default();
                if !["file:", "data:", "blob:", "about:"].iter().any(|own| url.starts_with(own)) {
                    self.faults.push(format!("a request leaves the page: {url}"));
                }
            }
            _ => {}
        }
    }

    /// Waits until `ready` is true. Returns the time that this took.
    pub fn open(&mut self, file: &Path, ready: &str) -> Result<Duration, String> {
        let begun = Instant::now();
        self.loaded = false;
        self.ask("Page.navigate", json!({"url": format!("file://{}", file.display())}))?;
        self.until(&format!("document.readyState === 'complete' && ({ready})"))?;
        Ok(begun.elapsed())
    }

    pub fn until(&mut self, expression: &str) -> Result<(), String> {
        let begun = Instant::now();
        while self.value(&format!("Boolean({expression})"))? != true {
            if begun.elapsed() > PATIENCE {
                return Err(format!("never true: {expression}; {}", self.faults.join("; ")));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    pub fn value(&mut self, expression: &str) -> Result<Value, String> {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.ask("Runtime.evaluate", params)?;
        match answer.get("exceptionDetails") {
            Some(details) => Err(format!("{expression}: {details}")),
            None => Ok(answer["result"]["value"].clone()),
        }
    }

    pub fn text(&mut self, expression: &str) -> Result<String, String> {
        Ok(self.value(expression)?.as_str().unwrap_or_default().to_string())
    }

    pub fn drawn(&mut self) -> Result<(), String> {
        let twice =
            "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(true))))";
        self.value(twice).map(|_| ())
    }

    fn mouse(&mut self, kind: &str, x: f64, y: f64, more: Value) -> Result<(), String> {
        let mut params = json!({"type": kind, "x": x, "y": y});
        for (name, value) in more.as_object().into_iter().flatten() {
            params[name] = value.clone();
        }
        self.ask("Input.dispatchMouseEvent", params).map(|_| ())
    }

    /// Scrolls an element into view and moves the pointer to a place in it, given as fractions of
    /// its size.
    pub fn point(&mut self, element: &str, x: f64, y: f64) -> Result<(f64, f64), String> {
        let code = format!(
            "(() => {{ const e = document.querySelector({element:?}); e.scrollIntoView({{block: 'center', behavior: 'instant'}}); \
             const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; }})()"
        );
        let found = self.value(&code)?;
        let of = |k: usize| found[k].as_f64().ok_or_else(|| format!("there is no {element}"));
        let at = (of(0)? + x * of(2)?, of(1)? + y * of(3)?);
        self.mouse("mouseMoved", at.0, at.1, json!({}))?;
        Ok(at)
    }

    pub fn click(&mut self, element: &str, x: f64, y: f64) -> Result<(), String> {
        let (x, y) = self.point(element, x, y)?;
        self.mouse("mousePressed", x, y, json!({"button": "left", "clickCount": 1}))?;
        self.mouse("mouseReleased", x, y, json!({"button": "left", "clickCount": 1}))?;
        self.drawn()
    }

    /// Drags from one place in an element to another. `keys` is 8 for Shift and 0 for no key.
    pub fn drag(
        &mut self,
        element: &str,
        from: (f64, f64),
        to: (f64, f64),
        keys: u32,
    ) -> Result<(), String> {
        let last = self.point(element, to.0, to.1)?;
        let first = self.point(element, from.0, from.1)?;
        let with = |buttons: u32| json!({"button": "left", "buttons": buttons, "clickCount": 1, "modifiers": keys});
        self.mouse("mousePressed", first.0, first.1, with(1))?;
        for part in [0.3, 0.7, 1.0] {
            let (x, y) = (first.0 + (last.0 - first.0) * part, first.1 + (last.1 - first.1) * part);
            self.mouse("mouseMoved", x, y, with(1))?;
        }
        self.mouse("mouseReleased", last.0, last.1, with(0))?;
        self.drawn()
    }

    pub fn wheel(&mut self, element: &str, x: f64, y: f64, by: f64) -> Result<(), String> {
        let (x, y) = self.point(element, x, y)?;
        self.mouse("mouseWheel", x, y, json!({"deltaX": 0, "deltaY": by}))?;
        self.drawn()
    }

    pub fn keys(&mut self, keys: &[&str]) -> Result<(), String> {
        for key in keys {
            let text = if key.len() == 1 { *key } else { "" };
            let down = json!({"type": if text.is_empty() { "rawKeyDown" } else { "keyDown" }, "key": key, "text": text});
            self.ask("Input.dispatchKeyEvent", down)?;
            self.ask("Input.dispatchKeyEvent", json!({"type": "keyUp", "key": key}))?;
        }
        self.drawn()
    }

    pub fn picture(&mut self, file: &Path, whole: bool) -> Result<(), String> {
        let params = json!({"format": "png", "captureBeyondViewport": whole});
        let answer = self.ask("Page.captureScreenshot", params)?;
        let bytes = STANDARD.decode(answer["data"].as_str().unwrap_or_default());
        let bytes = bytes.map_err(|e| format!("the picture: {e}"))?;
        std::fs::write(file, bytes).map_err(|e| format!("{}: {e}", file.display()))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // SAFETY: the child has not been waited for, so its process id is still its own. It leads
        // its own process group.
        unsafe { libc::kill(-(self.child.id() as i32), libc::SIGKILL) };
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}
