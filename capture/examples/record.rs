//! record.rs MODEL DIR: an engine in Rust that records itself with vernier_record.rs, and no crate.
//!
//!     rustc --edition 2021 -O record.rs && ./record MODEL dump
//!     vernier import dump -o cand.h5
//!
//! The engine stands for yours: Mistral with one prompt, in float32, slow. It reads a HuggingFace
//! directory with F16 weights in one file; sizes are those of the model in the guide for C.
mod vernier_record;

use std::collections::HashMap;
use vernier_record::Recorder;

// D model width, H query heads, G key heads, K head width, F feed-forward width, V vocabulary, L layers
const D: usize = 48;
const H: usize = 3;
const G: usize = 1;
const K: usize = 20;
const F: usize = 112;
const V: usize = 512;
const L: usize = 2;
const WINDOW: usize = 48;
const EPS: f64 = 1e-5;
const THETA: f64 = 10000.0;

fn half(bits: u16) -> f32 {
    let (e, m) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    let x = if e > 0 { (1024.0 + m) * 2f32.powi(e - 25) } else { m * 2f32.powi(-24) };
    if bits >> 15 == 1 { -x } else { x }
}

/// The weights of a model by name.
struct Weights(HashMap<String, Vec<f32>>);

impl Weights {
    /// Loads model.safetensors, and lists in the recording what was loaded.
    fn load(dir: &str, rec: &mut Recorder) -> Option<Weights> {
        let file = std::fs::read(format!("{}/model.safetensors", dir)).ok()?;
        let end = 8 + u64::from_le_bytes(file.get(..8)?.try_into().ok()?) as usize;
        let header = std::str::from_utf8(file.get(8..end)?).ok()?;
        let mut found = HashMap::new();
        // "NAME":{"dtype":"F16","shape":[2,3],"data_offsets":[0,12]}
        for part in header.split("\"data_offsets\":[") {
            let numbers = |text: &str| -> Vec<usize> { text.split(',').filter_map(|n| n.trim().parse().ok()).collect() };
            let (before, after) = (part, &header[part.as_ptr() as usize - header.as_ptr() as usize + part.len()..]);
            let name = before.rsplit("\":{").nth(1).and_then(|text| text.rsplit('"').next());
            let shape = before.rsplit("\"shape\":[").next().and_then(|text| text.split(']').next()).map(numbers);
            let places = after.strip_prefix("\"data_offsets\":[").and_then(|text| text.split(']').next()).map(numbers);
            if let (Some(name), Some(shape), Some(&[from, to])) = (name, shape, places.as_deref()) {
                let bytes = file.get(end + from..end + to)?;
                rec.weight_bytes(name, "f16", bytes, &shape);
                let values = bytes.chunks_exact(2).map(|b| half(u16::from_le_bytes([b[0], b[1]]))).collect();
                found.insert(name.to_string(), values);
            }
        }
        Some(Weights(found))
    }

    fn get(&self, name: &str) -> &[f32] {
        self.0.get(&format!("{}.weight", name)).unwrap_or_else(|| panic!("no weight {}", name))
    }

    /// y (T,M) = x (T,N) w^T, w (M,N)
    fn linear(&self, name: &str, x: &[f32], n: usize) -> Vec<f32> {
        let w = self.get(name);
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>() as f32;
        x.chunks(n).flat_map(|row| w.chunks(n).map(move |column| dot(row, column))).collect()
    }

    fn norm(&self, name: &str, x: &[f32]) -> Vec<f32> {
        let w = self.get(name);
        let mut y = Vec::with_capacity(x.len());
        for row in x.chunks(D) {
            let mean = row.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>() / D as f64;
            y.extend(row.iter().zip(w).map(|(&v, &g)| (f64::from(v) / (mean + EPS).sqrt()) as f32 * g));
        }
        y
    }
}

/// Rotates the pairs (i, i + K/2) of each head by the token's position.
fn rope(x: &[f32], heads: usize) -> Vec<f32> {
    let mut y = x.to_vec();
    for (row, head) in y.chunks_mut(K).enumerate() {
        for i in 0..K / 2 {
            let angle = (row / heads) as f64 * THETA.powf(-2.0 * i as f64 / K as f64);
            let (a, b) = (f64::from(head[i]), f64::from(head[i + K / 2]));
            head[i] = (a * angle.cos() - b * angle.sin()) as f32;
            head[i + K / 2] = (b * angle.cos() + a * angle.sin()) as f32;
        }
    }
    y
}

fn attention(q: &[f32], k: &[f32], v: &[f32], tokens: usize) -> Vec<f32> {
    let mut y = vec![0.0; tokens * H * K];
    for t in 0..tokens {
        for h in 0..H {
            let (g, first) = (h / (H / G), (t + 1).saturating_sub(WINDOW));
            let row = |of: &[f32], at: usize| -> Vec<f64> { of[at * K..][..K].iter().map(|&x| f64::from(x)).collect() };
            let query = row(q, t * H + h);
            let score = |j: usize| row(k, j * G + g).iter().zip(&query).map(|(a, b)| a * b).sum::<f64>();
            let mut p: Vec<f64> = (first..=t).map(|j| score(j) / (K as f64).sqrt()).collect();
            let most = p.iter().cloned().fold(f64::NEG_INFINITY, f64::max);
            p.iter_mut().for_each(|x| *x = (*x - most).exp());
            let sum: f64 = p.iter().sum();
            for i in 0..K {
                let x: f64 = (first..=t).map(|j| p[j - first] / sum * f64::from(v[(j * G + g) * K + i])).sum();
                y[(t * H + h) * K + i] = x as f32;
            }
        }
    }
    y
}

fn run(w: &Weights, ids: &[i32], rec: &mut Recorder) {
    let t = ids.len();
    let mut x: Vec<f32> = ids.iter().flat_map(|&id| w.get("model.embed_tokens")[id as usize * D..][..D].to_vec()).collect();
    rec.put("embed", Some("token hidden"), &x, &[t, D]);
    for l in 0..L {
        let name = |part: &str| format!("model.layers.{}.{}", l, part);
        let mut put = |point: &str, dims: &str, data: &[f32], shape: &[usize]| {
            rec.put(&format!("layer{}.{}", l, point), Some(dims), data, shape)
        };
        let h = w.norm(&name("input_layernorm"), &x);
        put("attn_norm", "token hidden", &h, &[t, D]);
        let q = w.linear(&name("self_attn.q_proj"), &h, D);
        let k = w.linear(&name("self_attn.k_proj"), &h, D);
        let v = w.linear(&name("self_attn.v_proj"), &h, D);
        put("q_proj", "token head dim", &q, &[t, H, K]);
        put("k_proj", "token kv_head dim", &k, &[t, G, K]);
        put("v_proj", "token kv_head dim", &v, &[t, G, K]);
        let (q, k) = (rope(&q, H), rope(&k, G));
        put("q_rope", "token head dim", &q, &[t, H, K]);
        put("k_rope", "token kv_head dim", &k, &[t, G, K]);
        let h = attention(&q, &k, &v, t);
        put("attn_context", "token head dim", &h, &[t, H, K]);
        let o = w.linear(&name("self_attn.o_proj"), &h, H * K);
        put("attn_out", "token hidden", &o, &[t, D]);
        x.iter_mut().zip(&o).for_each(|(a, b)| *a += b);
        put("attn_residual", "token hidden", &x, &[t, D]);
        let h = w.norm(&name("post_attention_layernorm"), &x);
        put("mlp_norm", "token hidden", &h, &[t, D]);
        let gate = w.linear(&name("mlp.gate_proj"), &h, D);
        let up = w.linear(&name("mlp.up_proj"), &h, D);
        put("gate_proj", "token ffn", &gate, &[t, F]);
        put("up_proj", "token ffn", &up, &[t, F]);
        let silu = |x: f32| (f64::from(x) / (1.0 + (-f64::from(x)).exp())) as f32;
        let act: Vec<f32> = gate.iter().zip(&up).map(|(&a, &b)| silu(a) * b).collect();
        put("mlp_act", "token ffn", &act, &[t, F]);
        let down = w.linear(&name("mlp.down_proj"), &act, F);
        put("down_proj", "token hidden", &down, &[t, D]);
        x.iter_mut().zip(&down).for_each(|(a, b)| *a += b);
        put("output", "token hidden", &x, &[t, D]);
    }
    let h = w.norm("model.norm", &x);
    rec.put("final_norm", Some("token hidden"), &h, &[t, D]);
    let logits = w.linear("lm_head", &h, D);
    rec.here();
    rec.put("logits", Some("token vocab"), &logits, &[t, V]);
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let config = args.get(1).and_then(|dir| std::fs::read_to_string(format!("{}/config.json", dir)).ok());
    let (config, dir, to) = match (config, &args[..]) {
        (Some(config), [_, dir, to]) => (config, dir, to),
        _ => {
            eprintln!("usage: record MODEL DIR");
            std::process::exit(2);
        }
    };
    let ids = [12, 345, 6, 78, 9, 10, 111, 213, 14, 415, 16, 17, 318, 19, 20, 21, 222];
    let mut rec = Recorder::open(to, "tiny mistral", Some("f32"));
    rec.say("language", "Rust");
    rec.config(&config);
    let weights = Weights::load(dir, &mut rec).unwrap_or_else(|| {
        eprintln!("record: {}: no such model", dir);
        std::process::exit(2);
    });
    rec.step(&ids);
    run(&weights, &ids, &mut rec);
    if let Err(e) = rec.close() {
        eprintln!("record: {}", e);
        std::process::exit(2);
    }
}
