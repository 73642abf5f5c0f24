package train

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// FuzzConfig reads config.json of hostile folders: an error or a description that passes its own check again.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"model_type":"gpt2","vocab_size":3,"n_positions":4,"n_layer":1,"n_head":2,"n_embd":8}`,
		`{"model_type":"resnet","channels":3,"height":8,"width":8,"classes":2,"blocks":[1,1,1,1],"planes":8}`,
		`{"model_type":"mlp","channels":1,"height":28,"width":28,"classes":10,"hidden":4,"warpline":{"version":1,"config":{"steps":3}}}`,
		`{"model_type":"lstm","lstm":{"vocab_size":3,"embedding":2,"layers":1,"width":4}}`, `{"model_type":"lstm","lstm":null}`,
		`{"model_type":"convnet","channels":-1}`, `{"warpline":null,"blocks":[1]}`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := os.WriteFile(filepath.Join(dir, configFile), raw, 0o666); err != nil {
			t.Fatal(err)
		}
		c, err := readConfig(dir)
		if err != nil {
			return
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var again file
		if err := json.Unmarshal(text, &again); err != nil || again.Check() != nil || again.Sizes() != c.Sizes() || again.Title() != c.Title() {
			t.Fatalf("%s becomes %s: %v", raw, text, err)
		}
		readRun(dir)
	})
}

// FuzzLog cuts hostile logs: what is kept is not cut again, and goes no further than asked.
func FuzzLog(f *testing.F) {
	f.Add([]byte("{\"step\":1,\"loss\":2,\"ms\":3}\n{\"step\":2,\"val_loss\":1}\n{\"final\":true}\n{\"st"), 5)
	f.Add([]byte("\n\n{}\n{\"step\":9}"), 9)
	f.Fuzz(func(t *testing.T, raw []byte, done int) {
		kept, steps, scores := cutLog(raw, done)
		for _, s := range steps {
			if s.Step < 1 || s.Step > done {
				t.Fatalf("step %d of at most %d", s.Step, done)
			}
		}
		again, s2, c2 := cutLog(kept, done)
		if string(again) != string(kept) || len(s2) != len(steps) || len(c2) != len(scores) {
			t.Fatalf("%q is cut to %q and then to %q", raw, kept, again)
		}
	})
}
