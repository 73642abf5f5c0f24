package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/internal/npy"
	"github.com/warpline-ml/warpline/internal/safetensors"
)

// command runs a command line in this process.
func command(ctx context.Context, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = execute(ctx, args, &out, &err)
	return status, out.String(), err.String()
}

// room is a folder of files for one test, which is the working folder.
type room struct {
	t   *testing.T
	dir string
}

func newRoom(t *testing.T) *room {
	dir := t.TempDir()
	t.Chdir(dir)
	return &room{t, dir}
}

func (r *room) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *room) file(name string, content []byte) {
	r.t.Helper()
	r.check(os.MkdirAll(filepath.Dir(name), 0o777))
	r.check(os.WriteFile(name, content, 0o666))
}

func (r *room) json(name string, v any) {
	r.t.Helper()
	raw, err := json.Marshal(v)
	r.check(err)
	r.file(name, raw)
}

func bytesArray(shape ...int) *npy.Array {
	n := 1
	for _, d := range shape {
		n *= d
	}
	a := &npy.Array{DType: "|u1", Shape: shape, Data: make([]byte, n)}
	for i := range a.Data {
		a.Data[i] = byte(i * 37 % 251)
	}
	return a
}

// labels are 0, 1, 2, 0, 1 …
func labels(n int) *npy.Array {
	a := bytesArray(n)
	for i := range a.Data {
		a.Data[i] = byte(i % 3)
	}
	return a
}

func (r *room) npz(name string, members ...npy.Member) {
	r.t.Helper()
	var b bytes.Buffer
	r.check(npy.WriteZip(&b, members, false))
	r.file(name, b.Bytes())
}

func images(a *npy.Array) npy.Member { return npy.Member{Name: "images", Array: a} }
func marks(a *npy.Array) npy.Member  { return npy.Member{Name: "labels", Array: a} }

// idx is a file of unsigned bytes.
func idx(a *npy.Array) []byte {
	b := []byte{0, 0, 8, byte(len(a.Shape))}
	for _, d := range a.Shape {
		b = binary.BigEndian.AppendUint32(b, uint32(d))
	}
	return append(b, a.Data...)
}

func zipped(content []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(content)
	w.Close()
	return b.Bytes()
}

// header is a safetensors file of a header and some bytes.
func header(text string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	return append(append(b, text...), make([]byte, n)...)
}

func (r *room) good(args ...string) {
	r.t.Helper()
	if status, _, stderr := command(r.t.Context(), args...); status != exitDone {
		r.t.Fatalf("%q: status %d\n%s", args, status, stderr)
	}
}

// rewrite changes one entry of a JSON file; keys lead to it.
func (r *room) rewrite(name string, value any, keys ...string) {
	r.t.Helper()
	raw, err := os.ReadFile(name)
	r.check(err)
	var root map[string]any
	r.check(json.Unmarshal(raw, &root))
	at := root
	for _, k := range keys[:len(keys)-1] {
		at = at[k].(map[string]any)
	}
	at[keys[len(keys)-1]] = value
	r.json(name, root)
}

func (r *room) copy(from, to string) {
	r.t.Helper()
	r.check(os.CopyFS(to, os.DirFS(from)))
}

// furnish makes the good and the bad files that the cases name.
func (r *room) furnish() {
	r.npz("good.npz", images(bytesArray(30, 1, 6, 6)), marks(labels(30)))
	r.npz("wide.npz", images(bytesArray(30, 1, 6, 7)), marks(labels(30)))
	r.npz("nolabels.npz", images(bytesArray(30, 1, 6, 6)))
	r.npz("fewlabels.npz", images(bytesArray(30, 1, 6, 6)), marks(labels(29)))
	r.npz("flat.npz", images(bytesArray(30, 36)), marks(labels(30)))
	r.npz("none.npz", images(bytesArray(0, 1, 6, 6)), marks(labels(0)))
	r.npz("tiny.npz", images(bytesArray(30, 1, 2, 2)), marks(labels(30)))
	r.npz("f64.npz", images(&npy.Array{DType: "<f8", Shape: []int{2, 1, 1, 1}, Data: make([]byte, 16)}), marks(labels(2)))
	r.npz("floatlabels.npz", images(bytesArray(2, 1, 6, 6)), marks(&npy.Array{DType: "<f4", Shape: []int{2}, Data: make([]byte, 8)}))
	r.npz("negative.npz", images(bytesArray(2, 1, 6, 6)), marks(&npy.Array{DType: "|i1", Shape: []int{2}, Data: []byte{1, 0xff}}))
	r.npz("classes.npz", images(bytesArray(30, 1, 6, 6)), marks(bytesArray(30)))
	r.npz("five.npz", images(bytesArray(5, 1, 6, 6)), marks(labels(5)))
	r.npz("nan.npz", images(&npy.Array{DType: "<f4", Shape: []int{2, 1, 6, 6}, Data: bytes.Repeat([]byte{0xff}, 288)}), marks(labels(2)))
	whole, err := os.ReadFile("good.npz")
	r.check(err)
	r.file("cut.npz", whole[:len(whole)/2])
	r.file("words.npz", []byte("this is no archive"))

	pictures, numbers := idx(bytesArray(30, 6, 6)), idx(labels(30))
	for dir, files := range map[string][2][]byte{
		"idx": {pictures, numbers}, "idxcut": {pictures[:100], numbers}, "idxswapped": {numbers, pictures}, "idxfew": {pictures, idx(labels(29))},
		"idxmagic": {append([]byte{1, 2, 3, 4}, pictures[4:]...), numbers}, "idxgz": {zipped(pictures)[:60], zipped(numbers)},
		"idxhuge": {append([]byte{0, 0, 8, 3}, bytes.Repeat([]byte{0xff}, 12)...), numbers},
	} {
		r.file(dir+"/t10k-images-idx3-ubyte", files[0])
		r.file(dir+"/t10k-labels-idx1-ubyte", files[1])
	}
	for name, y := range map[string]*npy.Array{"train": labels(30), "t10k": bytesArray(30)} { // of more classes
		r.file("idxtest/"+name+"-images-idx3-ubyte", pictures)
		r.file("idxtest/"+name+"-labels-idx1-ubyte", idx(y))
	}
	r.file("idxone/t10k-images-idx3-ubyte", pictures)
	r.check(os.Mkdir("empty", 0o777))

	r.file("good.txt", []byte(strings.Repeat("to be or not to be ", 40)))
	r.file("empty.txt", nil)
	r.file("short.txt", []byte("too short"))
	r.file("nul.txt", []byte("abc\x00def"))
	r.file("latin.txt", []byte("voil\xc3\xa0"[:4]+"e\xe9n"))
	r.file("one.txt", bytes.Repeat([]byte("a"), 900))
	r.file("odd.bin", make([]byte, 401))
	r.file("empty.bin", nil)
	ids := make([]byte, 4000)
	ids[3000], ids[3001] = 200, 0
	r.file("ids.bin", ids)
	r.file("ahead.bin", append([]byte{200, 0}, make([]byte, 4000)...))

	r.good("train", "mlp", "--data", "good.npz", "--batch", "4", "--steps", "4", "--save-every", "2", "--out", "run")
	r.good("train", "mlp", "--data", "five.npz", "--batch", "4", "--steps", "1", "--out", "five")
	r.good("train", "mlp", "--data", "good.npz", "--batch", "4", "--steps", "4", "--schedule", "cosine", "--out", "cosine")
	r.good("train", "gpt", "--data", "good.txt", "--batch", "2", "--steps", "1", "--context", "8", "--layers", "1", "--heads", "2", "--width", "8", "--out", "gpt")
	r.file("good2.txt", []byte(strings.Repeat("to be or not to be ", 40)))
	r.good("train", "gpt", "--data", "good2.txt", "--batch", "2", "--steps", "1", "--context", "8", "--layers", "1", "--heads", "2", "--width", "8", "--out", "retold")
	r.file("good2.txt", []byte(strings.Repeat("or not to be to be ", 40)))
	r.weights()
	r.checkpoints()
}

// weights makes bad files of weights.
func (r *room) weights() {
	whole, err := os.ReadFile("run/model.safetensors")
	r.check(err)
	r.file("cut.safetensors", whole[:len(whole)-10])
	r.file("empty.safetensors", nil)
	r.file("torch.pt", []byte("PK\x03\x04\x00\x00\x08\x08\x00\x00"))
	r.file("words.safetensors", []byte("this is no file of tensors at all"))
	r.file("length.safetensors", bytes.Repeat([]byte{0xff}, 64))
	r.file("overlap.safetensors", header(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, 12))
	r.file("shape.safetensors", header(`{"a":{"dtype":"F32","shape":[9223372036854775807,9],"data_offsets":[0,8]}}`, 8))
	r.file("twice.safetensors", header(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1))
	r.file("other.safetensors", header(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8))
	f, err := safetensors.Parse(whole)
	r.check(err)
	save := func(name string, change func(*safetensors.Tensor) bool) {
		var list []safetensors.Tensor
		for _, e := range f.Entries {
			t := safetensors.Tensor{Name: e.Name, DType: e.DType, Shape: e.Shape, Data: e.Data()}
			if change(&t) {
				list = append(list, t)
			}
		}
		var b bytes.Buffer
		r.check(safetensors.Write(&b, nil, list))
		r.file(name, b.Bytes())
	}
	save("missing.safetensors", func(t *safetensors.Tensor) bool { return t.Name != "3.bias" })
	save("integers.safetensors", func(t *safetensors.Tensor) bool {
		if t.DType == "F32" {
			t.DType = "I32"
		}
		return true
	})
	save("turned.safetensors", func(t *safetensors.Tensor) bool {
		if t.Name == "1.weight" {
			t.Shape = []int{t.Shape[1], t.Shape[0]}
		}
		return true
	})
	for name, change := range map[string]struct {
		key   string
		value any
	}{
		"heads": {"n_head", 3}, "gelu": {"activation_function", "relu"}, "kind": {"model_type", "bert"}, "negative": {"n_layer", -1}, "typed": {"n_embd", "wide"}, "inner": {"n_inner", 7},
		"vocab": {"vocab_size", 999999999},
	} {
		r.copy("gpt", "config_"+name)
		r.rewrite("config_"+name+"/config.json", change.value, change.key)
	}
	r.copy("run", "config_hidden")
	r.rewrite("config_hidden/config.json", 999999, "hidden")
	r.copy("gpt", "config_broken")
	r.file("config_broken/config.json", []byte("{"))
	r.copy("gpt", "vocabulary")
	r.file("vocabulary/tokenizer.json", []byte(`{"format":"warpline-tokenizer","version":9}`))
	r.copy("gpt", "unfinished")
	r.check(os.Remove("unfinished/model.safetensors"))
	r.check(os.RemoveAll("unfinished/checkpoint-1"))
}

// checkpoints makes run folders that cannot go on.
func (r *room) checkpoints() {
	for _, name := range []string{"none", "damaged", "version", "other", "settings"} {
		r.copy("run", "ck_"+name)
	}
	r.check(os.RemoveAll("ck_none/checkpoint-2"))
	r.check(os.RemoveAll("ck_none/checkpoint-4"))
	for _, step := range []string{"2", "4"} {
		r.check(os.Truncate("ck_damaged/checkpoint-"+step+"/model.safetensors", 50))
		r.check(os.RemoveAll("ck_other/checkpoint-" + step))
	}
	r.rewrite("ck_version/config.json", 99, "warpline", "version")
	r.rewrite("ck_settings/config.json", 1, "warpline", "config", "colour")
	r.copy("gpt/checkpoint-1", "ck_other/checkpoint-4")
}

// listing is every file below the folder with its size.
func (r *room) listing() string {
	var b strings.Builder
	r.check(filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && !d.IsDir() {
			fmt.Fprintf(&b, "%s %d\n", path, info.Size())
		} else {
			fmt.Fprintf(&b, "%s/\n", path)
		}
		return err
	}))
	return b.String()
}

// bad are command lines that cannot be done, each with what the cause must name. --out new is added where train would
// choose a folder.
var bad = []struct{ args, names string }{
	// The command line.
	{"nonsense", "nonsense"},
	{"torch nn.Linaer", "nn.Linaer"},
	{"torch nn.Linear 4", "4"},
	{"train nonsense", "nonsense"},
	{"train mlp --data good.npz --anomaly --capture", "--anomaly looks at each operation"},
	{"train mlp --data good.npz --statistics -1", "--statistics is -1"},
	{"train mlp --data good.npz --statistics 5 --capture", "--statistics looks at each module"},
	{"train mlp --data good.npz --statistics 5 --anomaly", "--statistics computes with what modules make"},
	{"compare mlp --amp none", "nothing to compare"},
	{"compare mlp --amp none,fp8", `--amp is "fp8"`},
	{"compare mlp --amp none,bf16 --sizes 4", "--amp compares precisions at one size"},
	{"compare matmul --amp none,bf16", "matmul"},
	{"train mlp --data good.npz --amp fp8", `--amp is "fp8"`},
	{"train mlp --data good.npz --params f16", `--params is "f16"`},
	{"train mlp --data good.npz --params bf16", "--params bf16 needs products in bfloat16, and --amp is none"},
	{"train mlp --data good.npz --params bf16 --amp fp16", "--amp is fp16"},
	{"train mlp --data good.npz --params bf16 --amp bf16 --average 0.9", "--average 0.9"},
	{"train mlp --data good.npz --params bf16-stochastic --amp bf16 --capture", "each run of a captured one"},
	{"train mlp --data good.npz --amp=f64", `--amp is "f64"`},
	{"train --resume --out run --amp fp16", "--amp fp16 contradicts the run in run, which has none"},
	{"train mlp --data good.npz --batch 28", "--batch 28 is more than the 27 samples"},
	{"eval gpt --skip 76", "--skip 76 leaves nothing of 76 tokens"},
	{"eval gpt --heads 3", "--heads 3 contradicts gpt, which has 2"},
	{"eval run --heads 3", "--heads is for gpt, and run is of type mlp"},
	{"sample gpt --heads 3", "--heads 3 contradicts gpt, which has 2"},
	{"eval torch.pt", "a file of torch.save"},
	{"train mlp --init torch.pt", "a file of torch.save"},
	{"eval nowhere", "cannot read nowhere: no such file"},
	{"train digit", "digit"},
	{"train digits mlp", `"mlp"`},
	{"train --nonsense", "nonsense"},
	{"train --batch", "batch"},
	{"train --batch many", `--batch is "many", which is no whole number`},
	{"train --batch 0", "--batch is 0"},
	{"bench copy --svg nowhere/x.svg", "there is no folder nowhere"},
	{"compare matmul --svg nowhere/x.svg", "there is no folder nowhere"},
	{"compare matmul --sizes x", "which is no list of whole numbers"},
	{"compare matmul --devices cpu", "1 device"},
	{"train --batch -3", "-3"},
	{"train --batch 99999999999999999999", "99999999999999999999"},
	{"train mlp --data good.npz --batch 9223372036854775807", "9223372036854775807"},
	{"train gpt --data good.txt --batch 288230376151711744", "288230376151711744"}, // times a context of 64 it is 0
	{"train --steps 0", "--steps is 0"},
	{"train --steps -1", "-1"},
	{"train --epochs 0", "--epochs is 0"},
	{"train mlp --data good.npz --epochs 9223372036854775807", "9223372036854775807"},
	{"train --lr -0.1", "-0.1"},
	{"train --lr NaN", "NaN"},
	{"train --lr Inf", "Inf"},
	{"train --weight-decay -1", "-1"},
	{"train --beta1 1", "--beta1 is 1"},
	{"train --clip -1", "-1"},
	{"train --average 1", "--average is 1"},
	{"train --warmup -5", "-5"},
	{"train --threads -1", "-1"},
	{"train --seed -1", "-1"},
	{"train --save-every -1", "-1"},
	{"train --optimizer liom", "liom"},
	{"train --schedule steep", "steep"},
	{"train --order upwards", "upwards"},
	{"train --device nowhere", "nowhere"},
	{"train --device cpu:7", "cpu:7"},
	{"train --device null:abacus", "abacus"},
	{"train --device cuda:65000", "cuda:65000"},
	{"train --device sim:v100-16", "has compute capability 7.0; the kernels need 7.5"},
	{"train gpt --data good.txt --device null:gtx-1650 --layers 6 --width 4096", "out of memory on null:gtx-1650"},
	// Settings that contradict each other.
	{"train --momentum 0.9", "--momentum"},
	{"train --optimizer sgd --beta1 0.5", "--beta1"},
	{"train --schedule-steps 9", "--schedule-steps"},
	{"train --schedule cosine --steps 10 --warmup 10", "10"},
	{"train --context 8", "--context"},
	{"train mlp --dropout 0.1", "--dropout is for gpt and lstm, and this run has the task mlp"},
	{"train --head whole", "--head"},
	{"train gpt --data good.txt --head half", "half"},
	{"train --step-in-backward --clip 1", "--clip 1"},
	{"train --step-in-backward --amp fp16", "--amp fp16"},
	{"train --step-in-backward --accumulate 2", "--accumulate 2"},
	{"train --step-in-backward=perhaps", "perhaps"},
	{"train --accumulate auto --capture", "--capture"},
	{"train --accumulate auto --step-in-backward", "--accumulate auto"},
	{"train --accumulate 0", "0"},
	{"train --accumulate -4", "-4"},
	{"train --accumulate many", "many"},
	{"train --batch 10 --accumulate 3", "--accumulate 3 does not divide --batch 10"},
	{"train --batch 10 --accumulate 20", "--accumulate 20 does not divide --batch 10"},
	{"train --freeze nowhere", "--freeze nowhere matches no parameter"},
	{"train --freeze *", "--freeze * matches every parameter"},
	{"train --freeze [", `"[" is no pattern`},
	{"train --freeze 0,", `"" is no pattern`},
	{"train --keep 0", `--keep is "0"`},
	{"train --keep -3", `--keep is "-3"`},
	{"train --keep everything", `--keep is "everything"`},
	{"train --lora 0", "--lora is 0"},
	{"train --lora -1", "--lora is -1"},
	{"train --lora many", "many"},
	{"train --lora 4096", "--lora 4096 is above the rank of every matrix"},
	{"train --lora 4 --freeze 0", "--lora 4 freezes all"},
	{"train --recompute attention", "the model of digits has no attention"},
	{"train --recompute everything", `--recompute is "everything"`},
	{"train gpt", "gpt"},
	{"train gpt --data good.txt --tokens ids.bin", "ids.bin"},
	{"train gpt --data good.txt --width 30 --heads 4", "30"},
	{"train gpt --data good.txt --heads 0", "--heads is 0"},
	{"train gpt --data good.txt --dropout 1", "--dropout is 1"},
	{"train gpt --data good.txt --vocab 8", "8"},
	{"train gpt --data good.txt --vocab 0", "--vocab is 0"},
	{"train gpt --tokens ids.bin", "ids.bin"},
	{"train --resume", "--out"},
	{"train --resume --out run --init run", "--init"},
	// Data.
	{"train tabular --target y", "tabular has no table to learn from"},
	{"train tabular --data good.txt", "which column"},
	{"train tabular --data missing.csv --target y", "missing.csv"},
	{"train mlp --target y", "--target is for tabular"},
	{"predict run", "INPUT... is missing"},
	{"predict missing x.png", "missing"},
	{"predict run missing.png", "missing.png"},
	{"train --data missing", "missing"},
	{"train --data empty", "empty"},
	{"train --data good.txt", "good.txt"},
	{"train --data idxone", "labels"},
	{"train --data idxcut", "images"},
	{"train --data idxswapped", "images"},
	{"train --data idxfew", "29"},
	{"train --data idxmagic", "images"},
	{"train --data idxgz", "images"},
	{"train --data idxhuge", "images"},
	{"train --data missing.npz", "missing.npz"},
	{"train --data cut.npz", "cut.npz"},
	{"train --data words.npz", "words.npz"},
	{"train --data nolabels.npz", "labels"},
	{"train --data fewlabels.npz", "29"},
	{"train --data flat.npz", "36"},
	{"train --data none.npz", "none.npz"},
	{"train --data tiny.npz", "2×2"},
	{"train mlp --data f64.npz", "<f8"},
	{"train mlp --data floatlabels.npz", "<f4"},
	{"train mlp --data negative.npz", "-1"},
	{"train gpt --data missing.txt", "missing.txt"},
	{"train gpt --data empty.txt", "empty.txt"},
	{"train gpt --data nul.txt", "nul.txt is no text: byte 0x00 at offset 3"},
	{"train gpt --data latin.txt", "latin.txt is no text: byte 0xe9 at offset 5"},
	{"train gpt --data one.txt", "one.txt"},
	{"train gpt --data short.txt", "short.txt"},
	{"train gpt --data empty", "empty"},
	{"train gpt --tokens missing.bin --vocab 9", "missing.bin"},
	{"train gpt --tokens odd.bin --vocab 9", "401"},
	{"train gpt --tokens empty.bin --vocab 9", "empty.bin"},
	{"train gpt --tokens ahead.bin --vocab 9 --order sequential --context 8 --batch 2", "200"},
	// Weights.
	{"train mlp --data good.npz --init missing", "missing"},
	{"train mlp --data good.npz --init empty", "empty"},
	{"train mlp --data good.npz --init cut.safetensors", "cut.safetensors"},
	{"train mlp --data good.npz --init empty.safetensors", "empty.safetensors"},
	{"train mlp --data good.npz --init words.safetensors", "words.safetensors"},
	{"train mlp --data good.npz --init length.safetensors", "18446744073709551615"},
	{"train mlp --data good.npz --init overlap.safetensors", "overlap.safetensors"},
	{"train mlp --data good.npz --init shape.safetensors", "9223372036854775807"},
	{"train mlp --data good.npz --init twice.safetensors", "twice.safetensors"},
	{"train mlp --data good.npz --init other.safetensors", "other.safetensors"},
	{"train mlp --data good.npz --init missing.safetensors", "3.bias"},
	{"train mlp --data good.npz --init integers.safetensors", "I32"},
	{"train mlp --data good.npz --init turned.safetensors", "1.weight"},
	{"train mlp --data good.npz --init gpt", "gpt2"},
	{"train mlp --data wide.npz --init run", "6×7"},
	{"train mlp --data classes.npz --init run", "classes"},
	{"train mlp --data idxtest --init run", "classes"},
	{"train digits --data good.npz --init run", "mlp"},
	{"train gpt --data good.txt --init run", "mlp"},
	{"train gpt --data good.txt --init gpt --layers 7", "7"},
	{"train gpt --data good.txt --init gpt --context 9", "9"},
	{"train gpt --data good.txt --init config_heads", "3"},
	{"train gpt --data good.txt --init config_gelu", "relu"},
	{"train gpt --data good.txt --init config_kind", "bert"},
	{"train gpt --data good.txt --init config_negative", "-1"},
	{"train gpt --data good.txt --init config_typed", "config.json"},
	{"train gpt --data good.txt --init config_inner", "7"},
	{"train gpt --data good.txt --init config_broken", "config.json"},
	{"train gpt --data good.txt --init unfinished", "model.safetensors"},
	{"train gpt --data good.txt --init config_vocab", "999999999"},
	{"train mlp --data good.npz --init config_hidden", "999999"},
	{"train gpt --data good.txt --init vocabulary", "9"},
	// The run folder.
	{"train --out run", "run"},
	{"train --out good.txt", "good.txt"},
	{"train --out good.txt/run", "good.txt"},
	{"train --resume --out run --batch auto", "the run in run"},
	{"train --resume --out run --reserve 9%", "--reserve"},
	{"train mlp --data good.npz --reserve 9%", "--reserve"},
	{"train mlp --data good.npz --dry-run=", "no card"},
	{"compare mlp --amp none,bf16 --data good.npz --devices null:t4", "null:t4 computes nothing"},
	{"train --resume --out missing", "missing"},
	{"train --resume --out empty", "empty"},
	{"train digits --resume --out run", "the run in run trains mlp, not digits"},
	{"train --init five --resume --out run", "--init five"},
	{"train --resume --out retold", "good2.txt"},
	{"train --resume --out run --lr 0.5", "0.5"},
	{"train --resume --out run --batch 5", "5"},
	{"train --resume --out run --data wide.npz", "wide.npz"},
	{"train --resume --out run --steps 3", "3"},
	{"train --resume --out cosine --steps 9", "9"},
	{"train --resume --out cosine --schedule-steps 9", "9"},
	{"train --resume --out ck_none", "ck_none"},
	{"train --resume --out ck_damaged", "checkpoint-4"},
	{"train --resume --out ck_version", "99"},
	{"train --resume --out ck_settings", "colour"},
	{"train --resume --out ck_other", "another model"},
	// Evaluation and samples.
	{"eval", "RUN|WEIGHTS"},
	{"eval missing", "missing"},
	{"eval empty", "empty"},
	{"eval unfinished", "model.safetensors"},
	{"eval run --data wide.npz", "6×7"},
	{"eval run --data classes.npz", "classes"},
	{"eval run --data nan.npz", "NaN"},
	{"eval run --data nan.npz --json", "NaN"},
	{"eval five", "five"},
	{"eval run --skip -1", "-1"},
	{"eval run --data good.npz --skip 30", "30"},
	{"eval run --tokens ids.bin", "ids.bin"},
	{"eval gpt --data good.npz --tokens ids.bin", "ids.bin"},
	{"eval gpt/model.safetensors --heads 3", "3"},
	{"eval gpt --tokens ids.bin", "200"},
	{"eval gpt --data short.txt", "short.txt"},
	{"eval cut.safetensors", "cut.safetensors"},
	{"eval run --device cpu:7", "cpu:7"},
	{"sample", "RUN"},
	{"sample run", "mlp"},
	{"sample gpt --prompt @", "@"},
	{"sample gpt --device null:t4", "null:t4"},
	{"sample gpt --length 0", "0"},
	{"sample gpt --temperature -1", "-1"},
	{"sample gpt --top-k -1", "-1"},
	// Checks.
	{"check cpu", "cpu"},
	{"check --device nowhere", "nowhere"},
	{"check --device sim:abacus", "abacus"},
	{"check --device cuda:65000", "cuda:65000"},
	{"check --device cpu --ops add,mtmul", "mtmul"},
	{"check --device cpu --skip mtmul", "mtmul"},
	{"check --device cpu --seed -1", "-1"},
	{"check --device cpu --record", "cpu"},
	{"check --device nowhere --record", "nowhere"},
	{"check --device sim:0 --record=missing/r.json", "missing/r.json"},
	{"check --device null:t4 --torch", "null:t4"},
}

// TestBadInput demands of every command line that cannot be done: status 2, one line of cause that names the values, one
// line of what to do, no trace, and no file made, changed or left over.
func TestBadInput(t *testing.T) {
	r := newRoom(t)
	r.furnish()
	before := r.listing()
	for _, c := range bad {
		args := strings.Fields(c.args)
		if args[0] == "train" && !strings.Contains(c.args, "--out") && c.args != "train --resume" {
			args = append(args, "--out", "new")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a command that trains after all ends
		status, _, stderr := command(ctx, args...)
		cancel()
		lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
		switch {
		case status != exitFailed:
			t.Errorf("%s: status %d\n%s", c.args, status, stderr)
		case len(lines) != 2 || !strings.HasPrefix(lines[0], "error: ") || !strings.HasPrefix(lines[1], "hint: ") || len(lines[1]) < 12:
			t.Errorf("%s: want a line of cause and one of what to do, got\n%s", c.args, stderr)
		case !strings.Contains(lines[0], c.names):
			t.Errorf("%s: %q does not name %q", c.args, lines[0], c.names)
		case strings.Contains(stderr, "goroutine ") || strings.Contains(stderr, ".go:") || strings.Contains(stderr, "mistake in warpline"):
			t.Errorf("%s: a trace:\n%s", c.args, stderr)
		}
		if after := r.listing(); after != before {
			t.Errorf("%s: the files changed: %s", c.args, firstChange(before, after))
			r.check(os.RemoveAll("new"))
			before = r.listing()
		}
	}
	t.Logf("%d command lines", len(bad))
}

// firstChange is the first line in which two listings differ.
func firstChange(before, after string) string {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return b[i]
		}
	}
	return "at the end"
}

// TestDivergence: a loss that is no number ends a run with status 2, and what the folder has is whole.
func TestDivergence(t *testing.T) {
	r := newRoom(t)
	r.npz("good.npz", images(bytesArray(30, 1, 6, 6)), marks(labels(30)))
	status, _, stderr := command(t.Context(), "train", "mlp", "--data", "good.npz", "--optimizer", "sgd", "--lr", "1e37", "--batch", "4", "--steps", "9", "--save-every", "1", "--out", "run")
	if status != exitFailed || strings.Count(stderr, "\n") != 2 || !strings.Contains(stderr, "at step") || !strings.Contains(stderr, "--lr") {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	for _, name := range []string{"model.safetensors", "loss.svg"} {
		if _, err := os.Stat("run/" + name); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	if strings.Contains(r.listing(), ".tmp") {
		t.Errorf("left over:\n%s", r.listing())
	}
}
