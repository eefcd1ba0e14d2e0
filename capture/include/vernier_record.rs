//! vernier_record.rs: records the tensors of an inference engine, from Rust, without any crate.
//!
//! It writes a directory of .npy files and a manifest (`vernier help dump.md`), from which `vernier
//! import` makes a checkpoint file. It is the twin of vernier_record.h. Copy this file into your
//! sources (Rust 1.63 or later, edition 2021):
//!
//!     mod vernier_record;
//!
//!     let mut rec = vernier_record::Recorder::open("dump", "my engine", Some("f32"));
//!     rec.step(&ids);
//!     rec.put("layer3.q_rope", Some("token head dim"), &q, &[tokens, heads, dim]);
//!     rec.close()?;
//!
//! - Errors: calls return nothing. The first failure is kept, and every later call does nothing. So
//!   it is enough to check `close`. Nothing here panics.
//! - Crashes: a file gets its final name once it is whole, and is listed in the manifest after that.
//!   If the program ends early, the whole tensors can be read. Only `close` marks the recording
//!   complete; a Recorder that is dropped without it does not.
//! - Forks: a recording belongs to the process that opened it. In a child forked later, every call
//!   fails, and `close` marks nothing.
//! - Size: every tensor is written, at once.
#![allow(dead_code)]

use std::borrow::Cow;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub const MAX_RANK: usize = 6;

/// The first failure of a recording, as one line.
#[derive(Debug, Clone)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

mod sealed {
    pub trait Number: Copy {
        const DTYPE: &'static str;
        fn write_to(self, to: &mut Vec<u8>);
    }
}
use sealed::Number;

macro_rules! numbers {
    ($($kind:ty: $word:literal),*) => {$(
        impl Number for $kind {
            const DTYPE: &'static str = $word;
            fn write_to(self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
numbers!(f32: "f32", f64: "f64", i32: "i32");

/// The numbers as they are in memory, little-endian.
fn bytes_of<T: Number>(data: &[T]) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        // f32, f64 and i32 have no padding, and any of their bytes may be read
        Cow::Borrowed(unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), std::mem::size_of_val(data)) })
    } else {
        let mut bytes = Vec::with_capacity(std::mem::size_of_val(data));
        data.iter().for_each(|x| x.write_to(&mut bytes));
        Cow::Owned(bytes)
    }
}

/// The letter of a dtype in .npy headers, and its size in bytes.
fn layout_of(dtype: &str) -> Option<(char, usize)> {
    Some(match dtype {
        "f32" => ('f', 4),
        "f16" => ('f', 2),
        "bf16" => ('u', 2),
        "f64" => ('f', 8),
        "i32" => ('i', 4),
        "f8_e4m3" | "f8_e5m2" => ('u', 1),
        _ => return None,
    })
}

/// A recording. One thread at a time.
pub struct Recorder {
    dir: PathBuf,
    manifest: Option<File>,
    error: Option<String>,
    tensors: u64,
    step: i64, // the current one, -1 before the first
    line: String,
    owner: u32, // the process that opened it
}

impl Recorder {
    /// Creates the directory if it does not exist; it must not hold a recording already. A file that
    /// exists is never replaced. Reports name the run by engine and precision ("f32", "f16", "bf16",
    /// or a word of the engine's own; None: not stated, and `vernier import` asks for it).
    pub fn open(dir: impl AsRef<Path>, engine: &str, precision: Option<&str>) -> Recorder {
        let mut r = Recorder {
            dir: dir.as_ref().to_path_buf(),
            manifest: None,
            error: None,
            tensors: 0,
            step: -1,
            line: String::new(),
            owner: std::process::id(),
        };
        let made = match fs::create_dir(&r.dir) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
            _ => Ok(()),
        };
        if let Err(e) = made {
            r.fail(format!("{}: cannot be made: {}", r.dir.display(), e));
            return r;
        }
        let path = r.dir.join("manifest.jsonl");
        match create(&path) {
            Ok(f) => r.manifest = Some(f),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                r.fail(format!("{}: already holds a recording", r.dir.display()))
            }
            Err(e) => r.fail(format!("{}: cannot be written: {}", path.display(), e)),
        }
        r.write_line(String::from("{\"vernier_dump\":1"));
        r.say("engine", engine);
        if let Some(word) = precision {
            r.say("precision", word);
        }
        r
    }

    /// Adds a fact about the run, such as "device" or "commit". A key has at most 31 bytes and may be
    /// given once. A value is cut to 255 bytes.
    pub fn say(&mut self, key: &str, value: &str) {
        if !self.ready() {
            return;
        }
        if key.is_empty() || key.len() > 31 {
            return self.fail(format!("'{}' is not a key of up to 31 bytes", cut(key, 40)));
        }
        self.write_line(format!("{{\"run\":{{{}:{}}}", quoted(key), quoted(cut(value, 255))));
    }

    /// Adds the model's config: the text of its config.json. `vernier import` then needs no --model
    /// to know axes and families.
    pub fn config(&mut self, json: &str) {
        if self.ready() {
            self.write_line(format!("{{\"config\":{}", quoted(json)));
        }
    }

    /// Lists a weight that the engine has loaded, under the name and in the numbers, the order and
    /// the format of the model's file: a weight that was never loaded, or loaded wrongly, is then
    /// seen. Only its digest and statistics are written.
    pub fn weight<T: Number>(&mut self, name: &str, data: &[T], shape: &[usize]) {
        self.weight_bytes(name, T::DTYPE, &bytes_of(data), shape);
    }

    /// The same for any dtype of `put_bytes`.
    pub fn weight_bytes(&mut self, name: &str, dtype: &str, bytes: &[u8], shape: &[usize]) {
        if self.ready() && self.fits(name, dtype, bytes.len(), shape) {
            let (digest, about) = (xxh3_128(bytes), statistics(dtype, bytes));
            self.write_line(format!(
                "{{\"weight\":{},\"dtype\":\"{}\",\"shape\":{},\"digest\":\"{:032x}\"{}",
                quoted(name),
                dtype,
                list(shape),
                digest,
                about
            ));
        }
    }

    /// Begins a step: one forward call, which is the prompt or any later call on the same cache. ids:
    /// the input tokens, whose positions continue those of the step before, from 0.
    pub fn step(&mut self, ids: &[i32]) {
        self.begin(ids, None);
    }

    /// The same with the positions of the tokens.
    pub fn step_at(&mut self, ids: &[i32], positions: &[i32]) {
        self.begin(ids, Some(positions));
    }

    fn begin(&mut self, ids: &[i32], positions: Option<&[i32]>) {
        if !self.ready() {
            return;
        }
        if positions.map_or(false, |p| p.len() != ids.len()) {
            return self.fail(format!("a step of {} tokens with another number of positions", ids.len()));
        }
        self.step += 1;
        let places = positions.map_or(String::new(), |p| format!(",\"positions\":{}", list(p)));
        self.write_line(format!("{{\"step\":{},\"ids\":{}{}", self.step, list(ids), places));
    }

    /// Sets the source line of the next tensor, which reports show as FILE:LINE, to that of this call.
    #[track_caller]
    pub fn here(&mut self) {
        let at = std::panic::Location::caller();
        self.at(at.file(), at.line());
    }

    /// Sets the source line of the next tensor. A long path loses its beginning.
    pub fn at(&mut self, file: &str, line: u32) {
        let mut from = file.len().saturating_sub(100); // a line of a checkpoint file has at most 127 bytes
        while !file.is_char_boundary(from) {
            from += 1;
        }
        self.line = format!("{}:{}", &file[from..], line);
    }

    /// Writes one tensor of the current step, row-major.
    ///
    /// name: a checkpoint name ("layer3.q_rope", see `vernier points`), or the engine's own name for
    /// use with a name map; a step cannot hold two tensors of one name. dims: one word per axis,
    /// outermost first: "token head dim"; several words that share an axis stand in parentheses:
    /// "token (head dim)"; None: the axes that the checkpoint has by definition. shape: at most 6
    /// axes.
    pub fn put<T: Number>(&mut self, name: &str, dims: Option<&str>, data: &[T], shape: &[usize]) {
        self.put_op(name, dims, T::DTYPE, &bytes_of(data), shape, None);
    }

    /// The same for the bits of "bf16" or "f16", a number each.
    pub fn put_bits(&mut self, name: &str, dims: Option<&str>, dtype: &str, bits: &[u16], shape: &[usize]) {
        let bytes: Vec<u8> = bits.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.put_op(name, dims, dtype, &bytes, shape, None);
    }

    /// The same for little-endian bytes. dtype: "f32", "f16", "bf16", "f64", "i32", "f8_e4m3" or
    /// "f8_e5m2".
    pub fn put_bytes(&mut self, name: &str, dims: Option<&str>, dtype: &str, bytes: &[u8], shape: &[usize]) {
        self.put_op(name, dims, dtype, bytes, shape, None);
    }

    /// Same as `put`, for data with strides, in numbers: element (i, j, ...) is data[i * stride[0] +
    /// j * stride[1] + ...]. op: the engine's name for the operation that made the tensor ("ROPE").
    pub fn put_strided<T: Number>(
        &mut self,
        name: &str,
        dims: Option<&str>,
        data: &[T],
        shape: &[usize],
        stride: &[usize],
        op: Option<&str>,
    ) {
        if !self.ready() {
            return;
        }
        let (mut bytes, mut index) = (Vec::new(), vec![0; shape.len()]);
        let mut left = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        if stride.len() != shape.len() {
            left = None;
        }
        while left.map_or(false, |n| n > 0) {
            let at = index.iter().zip(stride).try_fold(0usize, |a, (&i, &s)| a.checked_add(s.checked_mul(i)?));
            match at.and_then(|at| data.get(at)) {
                Some(x) => x.write_to(&mut bytes),
                None => return self.fail(format!("{}: its strides leave the data", cut(name, 100))),
            }
            for a in (0..index.len()).rev() {
                index[a] += 1;
                if index[a] < shape[a] {
                    break;
                }
                index[a] = 0;
            }
            left = left.map(|n| n - 1);
        }
        if left.is_none() {
            return self.fail(format!("{}: a stride for each of {} axes is expected", cut(name, 100), shape.len()));
        }
        self.put_op(name, dims, T::DTYPE, &bytes, shape, op);
    }

    fn put_op(&mut self, name: &str, dims: Option<&str>, dtype: &str, bytes: &[u8], shape: &[usize], op: Option<&str>) {
        if !self.ready() {
            return;
        }
        if self.step < 0 {
            return self.fail(format!("{}: no step was begun before this tensor", cut(name, 100)));
        }
        if !self.fits(name, dtype, bytes.len(), shape) {
            return;
        }
        let file = self.file_name(name);
        if let Err(e) = write_npy(&self.dir.join(&file), dtype, shape, bytes) {
            return self.fail(format!("{}: cannot be written: {}", self.dir.join(&file).display(), e));
        }
        self.tensors += 1;
        let mut line = format!(
            "{{\"tensor\":{},\"file\":{},\"dtype\":\"{}\",\"shape\":{}",
            quoted(name),
            quoted(&file),
            dtype,
            list(shape)
        );
        let said = std::mem::take(&mut self.line);
        for (key, value) in [("dims", dims), ("op", op), ("source_line", Some(said.as_str()).filter(|s| !s.is_empty()))] {
            if let Some(text) = value {
                line.push_str(&format!(",\"{}\":{}", key, quoted(text)));
            }
        }
        self.write_line(line);
    }

    /// Marks the recording complete in the manifest. Fails if anything has failed since `open`.
    pub fn close(mut self) -> Result<(), Error> {
        if self.ready() {
            self.write_line(format!("{{\"complete\":{}", self.tensors));
        }
        match self.error.take() {
            Some(text) => Err(Error(text)),
            None => Ok(()),
        }
    }

    /// The first failure so far.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    // ---- helpers -------------------------------------------------------------------------------

    fn fail(&mut self, text: String) {
        let line = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        self.error.get_or_insert(line);
    }

    fn ready(&mut self) -> bool {
        if self.owner != std::process::id() {
            self.fail("this process was forked from the one that opened the recording, which alone writes it".into());
        }
        self.error.is_none()
    }

    /// Name, format and shape of a tensor of so many bytes.
    fn fits(&mut self, name: &str, dtype: &str, bytes: usize, shape: &[usize]) -> bool {
        let short = cut(name, 100);
        let wrong = if name.is_empty() {
            String::from("a tensor has no name")
        } else if shape.len() > MAX_RANK {
            format!("{}: rank {}; expected 0 to {}", short, shape.len(), MAX_RANK)
        } else if let Some((_, width)) = layout_of(dtype) {
            let wanted = shape.iter().try_fold(width, |n, &d| n.checked_mul(d));
            if wanted == Some(bytes) {
                return true;
            }
            format!("{}: {} bytes of {} for the shape {}", short, bytes, dtype, list(shape))
        } else {
            format!(
                "{}: dtype '{}' is not one of f32, f16, bf16, f64, i32, f8_e4m3, f8_e5m2",
                short,
                cut(dtype, 20)
            )
        };
        self.fail(wrong);
        false
    }

    /// 000012.layer3.q_rope.npy: the number makes the name unique, also on file systems that ignore
    /// case.
    fn file_name(&self, name: &str) -> String {
        let plain = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'.';
        let text: String = name.bytes().take(80).map(|c| if plain(c) { c as char } else { '_' }).collect();
        format!("{:06}.{}.npy", self.tensors, text)
    }

    /// Ends a line of the manifest, and writes it with a single call.
    fn write_line(&mut self, mut line: String) {
        line.push_str("}\n");
        if let (None, Some(f)) = (&self.error, &mut self.manifest) {
            if let Err(e) = f.write_all(line.as_bytes()) {
                self.fail(format!("{}: manifest.jsonl cannot be written: {}", self.dir.display(), e));
            }
        }
    }
}

/// Creates a file where nothing is.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Writes a .npy file, version 1, whose data begins at a multiple of 64 bytes.
fn write_npy(path: &Path, dtype: &str, shape: &[usize], bytes: &[u8]) -> io::Result<()> {
    let (kind, width) = layout_of(dtype).unwrap_or(('f', 4));
    let axes: String = shape.iter().map(|d| format!("{}, ", d)).collect();
    let order = if width == 1 { '|' } else { '<' };
    let text = format!("{{'descr': '{}{}{}', 'fortran_order': False, 'shape': ({}), }}", order, kind, width, axes);
    let length = (10 + text.len() + 1 + 63) / 64 * 64;
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend_from_slice(&((length - 10) as u16).to_le_bytes());
    header.extend_from_slice(text.as_bytes());
    header.resize(length - 1, b' ');
    header.push(b'\n');
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let mut f = create(Path::new(&part))?;
    f.write_all(&header)?;
    f.write_all(bytes)?;
    drop(f);
    drop(create(path)?); // a rename replaces what has the name
    fs::rename(&part, path)
}

/// The beginning of a text, of at most n bytes.
fn cut(text: &str, n: usize) -> &str {
    let mut end = text.len().min(n);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn quoted(text: &str) -> String {
    let mut to = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => to.extend(['\\', c]),
            c if (c as u32) < 0x20 => to.push_str(&format!("\\u{:04x}", c as u32)),
            c => to.push(c),
        }
    }
    to.push('"');
    to
}

fn list<T: fmt::Display>(numbers: &[T]) -> String {
    let text: Vec<String> = numbers.iter().map(|x| x.to_string()).collect();
    format!("[{}]", text.join(","))
}

// ---- weights -------------------------------------------------------------------------------------

fn half(bits: u16) -> f64 {
    let (e, m) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let x = match e {
        0 => m * 2f64.powi(-24),
        31 if m == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + m) * 2f64.powi(e - 25),
    };
    if bits >> 15 == 1 { -x } else { x }
}

/// Minimum, maximum, mean and root mean square of the finite numbers, and how many are NaN or
/// infinite, as the end of a line. 8-bit formats have none: their scale is not known.
fn statistics(dtype: &str, bytes: &[u8]) -> String {
    let width = layout_of(dtype).map_or(1, |l| l.1);
    let number = |b: &[u8]| -> f64 {
        match (dtype, b) {
            ("f16", &[a, b]) => half(u16::from_le_bytes([a, b])),
            ("bf16", &[a, b]) => f64::from(f32::from_le_bytes([0, 0, a, b])),
            ("f32", &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
            ("i32", &[a, b, c, d]) => f64::from(i32::from_le_bytes([a, b, c, d])),
            ("f64", &[a, b, c, d, e, f, g, h]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => f64::NAN,
        }
    };
    let (mut low, mut high, mut sum, mut squares) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0.0);
    let (mut n, mut nan, mut inf) = (0u64, 0u64, 0u64);
    for x in bytes.chunks_exact(width).map(number) {
        if x.is_finite() {
            low = low.min(x);
            high = high.max(x);
            sum += x;
            squares += x * x;
            n += 1;
        } else if x.is_nan() {
            nan += 1;
        } else {
            inf += 1;
        }
    }
    if n == 0 || width == 1 || !(squares.is_finite()) {
        return String::new();
    }
    let n = n as f64;
    format!(
        ",\"min\":{:e},\"max\":{:e},\"mean\":{:e},\"rms\":{:e},\"nan\":{},\"inf\":{}",
        low,
        high,
        sum / n,
        (squares / n).sqrt(),
        nan,
        inf
    )
}

const P32: [u64; 3] = [0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D];
const P64: [u64; 5] = [
    0x9E37_79B1_85EB_CA87,
    0xC2B2_AE3D_27D4_EB4F,
    0x1656_67B1_9E37_79F9,
    0x85EB_CA77_C2B2_AE63,
    0x27D4_EB2F_1656_67C5,
];
const SECRET: [u8; 192] = [
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
];

fn word(b: &[u8], at: usize) -> u64 {
    let mut x = [0; 8];
    x.copy_from_slice(&b[at..at + 8]);
    u64::from_le_bytes(x)
}

fn word32(b: &[u8], at: usize) -> u64 {
    u64::from(b[at]) | u64::from(b[at + 1]) << 8 | u64::from(b[at + 2]) << 16 | u64::from(b[at + 3]) << 24
}

fn fold(a: u64, b: u64) -> u64 {
    let m = u128::from(a) * u128::from(b);
    m as u64 ^ (m >> 64) as u64
}

fn spread(mut h: u64) -> u64 {
    h = (h ^ h >> 37).wrapping_mul(0x1656_6791_9E37_79F9);
    h ^ h >> 32
}

fn spread64(mut h: u64) -> u64 {
    h = (h ^ h >> 33).wrapping_mul(P64[1]);
    h = (h ^ h >> 29).wrapping_mul(P64[2]);
    h ^ h >> 32
}

/// The XXH3 digest of 128 bits, with seed 0: what checkpoint files have.
fn xxh3_128(b: &[u8]) -> u128 {
    let (low, high) = match b.len() {
        0 => (spread64(word(&SECRET, 64) ^ word(&SECRET, 72)), spread64(word(&SECRET, 80) ^ word(&SECRET, 88))),
        1..=16 => short(b),
        17..=240 => middle(b),
        _ => long(b),
    };
    u128::from(high) << 64 | u128::from(low)
}

fn short(b: &[u8]) -> (u64, u64) {
    let (s, n) = (&SECRET, b.len());
    if n < 4 {
        let x = (b[0] as u32) << 16 | (b[n / 2] as u32) << 24 | b[n - 1] as u32 | (n as u32) << 8;
        let y = x.swap_bytes().rotate_left(13);
        return (
            spread64(u64::from(x) ^ word32(s, 0) ^ word32(s, 4)),
            spread64(u64::from(y) ^ word32(s, 8) ^ word32(s, 12)),
        );
    }
    if n < 9 {
        let x = (word32(b, 0) | word32(b, n - 4) << 32) ^ word(s, 16) ^ word(s, 24);
        let m = u128::from(x) * u128::from(P64[0].wrapping_add((n as u64) << 2));
        let (mut low, mut high) = (m as u64, (m >> 64) as u64);
        high = high.wrapping_add(low << 1);
        low ^= high >> 3;
        low = (low ^ low >> 35).wrapping_mul(0x9FB2_1C65_1E98_DF25);
        return (low ^ low >> 28, spread(high));
    }
    let (first, mut last) = (word(b, 0), word(b, n - 8));
    let m = u128::from(first ^ last ^ word(s, 32) ^ word(s, 40)) * u128::from(P64[0]);
    let (mut low, mut high) = (m as u64, (m >> 64) as u64);
    low = low.wrapping_add((n as u64 - 1) << 54);
    last ^= word(s, 48) ^ word(s, 56);
    high = high.wrapping_add(last).wrapping_add((last & 0xFFFF_FFFF).wrapping_mul(P32[1] - 1));
    low ^= high.swap_bytes();
    let m = u128::from(low) * u128::from(P64[1]);
    let top = ((m >> 64) as u64).wrapping_add(high.wrapping_mul(P64[1]));
    (spread(m as u64), spread(top))
}

fn mix(b: &[u8], at: usize, key: usize) -> u64 {
    fold(word(b, at) ^ word(&SECRET, key), word(b, at + 8) ^ word(&SECRET, key + 8))
}

fn middle(b: &[u8]) -> (u64, u64) {
    let n = b.len();
    let (mut low, mut high) = ((n as u64).wrapping_mul(P64[0]), 0u64);
    let add = |low: &mut u64, high: &mut u64, x: usize, y: usize, key: usize| {
        *low = low.wrapping_add(mix(b, x, key)) ^ word(b, y).wrapping_add(word(b, y + 8));
        *high = high.wrapping_add(mix(b, y, key + 16)) ^ word(b, x).wrapping_add(word(b, x + 8));
    };
    if n <= 128 {
        for i in (0..(n - 1) / 32 + 1).rev() {
            add(&mut low, &mut high, 16 * i, n - 16 * (i + 1), 32 * i);
        }
    } else {
        for i in 0..4 {
            add(&mut low, &mut high, 32 * i, 32 * i + 16, 32 * i);
        }
        low = spread(low);
        high = spread(high);
        for i in 4..n / 32 {
            add(&mut low, &mut high, 32 * i, 32 * i + 16, 3 + 32 * (i - 4));
        }
        add(&mut low, &mut high, n - 16, n - 32, 103);
    }
    let top = low.wrapping_mul(P64[0]).wrapping_add(high.wrapping_mul(P64[3]));
    let top = top.wrapping_add((n as u64).wrapping_mul(P64[1]));
    (spread(low.wrapping_add(high)), 0u64.wrapping_sub(spread(top)))
}

fn long(b: &[u8]) -> (u64, u64) {
    let n = b.len() as u64;
    let mut acc = [P32[2], P64[0], P64[1], P64[2], P64[3], P32[1], P64[4], P32[0]];
    let stripe = |acc: &mut [u64; 8], at: usize, key: usize| {
        for i in 0..8 {
            let x = word(b, at + 8 * i);
            let y = x ^ word(&SECRET, key + 8 * i);
            acc[i ^ 1] = acc[i ^ 1].wrapping_add(x);
            acc[i] = acc[i].wrapping_add((y & 0xFFFF_FFFF).wrapping_mul(y >> 32));
        }
    };
    let blocks = (b.len() - 1) / 1024;
    for block in 0..blocks {
        for i in 0..16 {
            stripe(&mut acc, 1024 * block + 64 * i, 8 * i);
        }
        for (i, a) in acc.iter_mut().enumerate() {
            *a = (*a ^ *a >> 47 ^ word(&SECRET, 128 + 8 * i)).wrapping_mul(P32[0]);
        }
    }
    for i in 0..(b.len() - 1 - 1024 * blocks) / 64 {
        stripe(&mut acc, 1024 * blocks + 64 * i, 8 * i);
    }
    stripe(&mut acc, b.len() - 64, 192 - 64 - 7);
    let merge = |key: usize, start: u64| {
        let pair = |i: usize| {
            fold(acc[2 * i] ^ word(&SECRET, key + 16 * i), acc[2 * i + 1] ^ word(&SECRET, key + 16 * i + 8))
        };
        spread((0..4).fold(start, |sum, i| sum.wrapping_add(pair(i))))
    };
    (merge(11, n.wrapping_mul(P64[0])), merge(192 - 64 - 11, !n.wrapping_mul(P64[1])))
}
