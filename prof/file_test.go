package prof_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/prof"
)

// aProfile is a profile of a training on a device.
func aProfile(t *testing.T, device string) *prof.Profile {
	p, _ := profiled(t, device, prof.Config{Skip: 1, Warmup: 1, Active: 2, Repeat: 1})
	return p
}

// shown is all that a profile shows.
func shown(t *testing.T, p *prof.Profile) string {
	t.Helper()
	var b bytes.Buffer
	for _, by := range []prof.By{prof.Op, prof.Module, prof.Line, prof.Shape, prof.Kernel} {
		if err := p.WriteTable(&b, prof.Table{By: by, Top: -1, Width: 200}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.WriteScreen(&b, 100); err != nil {
		t.Fatal(err)
	}
	if err := p.Trace(&b, "t"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestFile: what was written shows the same when it is read, tables, screen and trace, of every engine.
func TestFile(t *testing.T) {
	for _, e := range engines {
		p := aProfile(t, e.name)
		p.Unreached = []string{"head.bias"}
		path := filepath.Join(t.TempDir(), "profile.json")
		if err := p.Write(path); err != nil {
			t.Fatal(err)
		}
		q, err := prof.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := shown(t, p), shown(t, q); a != b {
			t.Errorf("%s: read back it shows\n%.2000s\nnot\n%.2000s", e.name, b, a)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var foreign map[string]any
		if err := json.Unmarshal(raw, &foreign); err != nil {
			t.Errorf("%s: not JSON: %v", e.name, err)
		}
	}
}

// matmulOfNothing is the file of a profile that has a product without operands.
const matmulOfNothing = `{"format":"warpline-profile-1","devices":[{"Name":"cpu"}],"took_ns":100,"steps":[[1,0]],"kernels":[{"op":"matmul","shape":"matmul","flops":1,"bytes":8,"ins":[]}],"ranges":[],"sites":[{"line":"main.go:3"}],"whats":[{"kind":"launch","kernel":1}],"times":[[1,2]],"events":[[1,2,3,0,0,1]]}`

// TestReadRefuses: what is no profile, or one of another program, is an error that says so.
func TestReadRefuses(t *testing.T) {
	p := aProfile(t, "cpu")
	whole := filepath.Join(t.TempDir(), "profile.json")
	if err := p.Write(whole); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for name, bad := range map[string]string{
		"no profile":            "",
		"unexpected":            text[:len(text)/2],
		"memory of device 0":    strings.Replace(text, `"steps":[[`, `"memory":[{"labels":["a"],"at":[1,2],"bytes":[[5]],"reserved":[1,2]}],"steps":[[`, 1),
		"of another version":    strings.Replace(text, "profile-1", "profile-9", 1),
		"no profile: ":          "[1,2,3]",
		"change 0 of memory":    strings.Replace(text, `"times":[`, `"blocks":[[1,7,64,512,0]],"times":[`, 1),
		"lies in none":          strings.Replace(text, `"ranges":[{"name":"`, `"ranges":[{"parent":1,"name":"`, 1),
		"a launch without":      strings.Replace(text, `"kernel":1,`, ``, 1),
		"a matmul without":      matmulOfNothing,
		"events are of, number": strings.Replace(text, `"kind":"launch"`, `"kind":"lunch"`, 1),
	} {
		path := filepath.Join(t.TempDir(), "bad.json")
		if err := os.WriteFile(path, []byte(bad), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := prof.Read(path); err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(name, " ")) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := prof.Read(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) {
		t.Errorf("no file: %v", err)
	}
}

// FuzzRead: whatever a file says, reading it ends with an error or with a profile that can be shown.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"format":"warpline-profile-1","devices":[{"Name":"cpu"}],"took_ns":100,"memory":[{"device":"cpu","labels":["gradient"],"at":[1],"bytes":[[5]],"reserved":[9],"peak":5,"top":[{"label":"gradient","bytes":5}]}],"steps":[[1,0]],"kernels":[{"op":"add","shape":"add f32[2]","flops":1,"bytes":8,"ins":[{"dims":[2],"type":"float"}]}],"ranges":[{"name":"a","parent":2},{"name":"b"}],"sites":[{"line":"main.go:3"}],"whats":[{"kind":"launch","kernel":1},{"kind":"wait"},{"kind":"copy","bytes":3},{"kind":"range"}],"times":[[1,2]],"events":[[1,2,3,1,0,1],[2,2,0,0,1,0],[2,2,0,0,2,0],[2,2,0,1,3,0]]}`))
	f.Add([]byte(`{"format":"warpline-profile-1","devices":[{"Name":"cpu","Began":{"allocated":8,"reserved":8}}],"took_ns":100,"steps":[[1,0]],"blocks":[[1,0,4096,512,0],[2,0,4096,512,1],[3,0,4096,-512,0]],"events":[]}`))
	f.Add([]byte(matmulOfNothing))
	f.Add([]byte(strings.Replace(matmulOfNothing, `"ins":[]`, `"ins":[{"dims":[2,2],"type":"float"}]`, 1)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		path := filepath.Join(t.TempDir(), "profile.json")
		if err := os.WriteFile(path, raw, 0o666); err != nil {
			t.Fatal(err)
		}
		if p, err := prof.Read(path); err == nil {
			shown(t, p)
			p.Findings()
			p.Against(p, prof.Op)
			p.WritePprof(filepath.Join(t.TempDir(), "device.pb.gz"))
		}
	})
}

// TestAgainst: a profile beside itself has no difference; beside one of more work, what was added.
func TestAgainst(t *testing.T) {
	p := aProfile(t, "null:h100-80")
	for _, c := range p.Against(p, prof.Op) {
		if c.Difference() != 0 || c.Calls[0] != c.Calls[1] {
			t.Errorf("beside itself: %+v", c)
		}
	}
	var b bytes.Buffer
	if err := p.WriteAgainst(&b, p, prof.Table{By: prof.Module}); err != nil || !strings.Contains(b.String(), "before") {
		t.Errorf("%v\n%s", err, b.String())
	}
	if err := p.WriteAgainst(&b, p, prof.Table{Sort: "self"}); err == nil {
		t.Error("a sort key is taken")
	}
	if _, err := prof.ByName("modul"); err == nil || !strings.Contains(err.Error(), "modul") {
		t.Error(err)
	}
}
