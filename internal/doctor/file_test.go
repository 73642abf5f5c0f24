package doctor

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestRead: a file that has no facts, or those of a later version, is refused with what to do; what is null in it is left out.
func TestRead(t *testing.T) {
	whole, err := json.Marshal(trained())
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                                "has no facts",
		"[]":                              "has no facts",
		"null":                            "names no version",
		`{"hello": 1}`:                    "names no version",
		`{"version": 99}`:                 "of version 99",
		`{"version": "one"}`:              "has no facts",
		string(whole[:900]):               "has no facts",
		"\xff\xfe{\x00":                   "has no facts",
		strings.Repeat(" ", 17<<20):       "more than",
		strings.Repeat(`{"pci":[`, 20000): "has no facts",
	} {
		if _, err := Read("facts.json", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "facts.json") {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
	f, err := Read("facts.json", strings.NewReader(`{"version": 1, "os": "plan9", "python": {"environments": [null, {"root": "/a"}]}}`))
	if err != nil || len(f.Python.Environments) != 1 {
		t.Fatalf("%+v, %v", f, err)
	}
	if d := Judge(f); d.Verdict.Broken != "" || len(d.Ladder) != 11 {
		t.Errorf("%+v", d.Verdict)
	}
}

// FuzzFacts: facts of a file, whatever they are, can be judged, printed and bundled, and their bundle too.
func FuzzFacts(f *testing.F) {
	for _, base := range []func() *Facts{server, desktop, docker, underWindows, bare, trained} {
		raw, err := json.Marshal(base())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	for _, c := range ruleCases {
		facts := c.base()
		c.ill(facts)
		raw, _ := json.Marshal(facts)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		facts, err := Read("facts.json", bytes.NewReader(raw))
		if err != nil {
			return
		}
		for _, f := range []*Facts{facts, Bundle(facts)} {
			d := Judge(f)
			if d.Text(80) == "" || len(d.Ladder) != len(steps) {
				t.Error("nothing is said")
			}
			for _, x := range d.Findings {
				if x.Fix == "" || x.Rule == "" || len(x.Evidence) == 0 || strings.Contains(x.Fix, "\n") && !strings.Contains(string(raw), `\n`) {
					t.Errorf("%+v", x)
				}
			}
			if _, err := json.Marshal(d); err != nil {
				t.Error(err)
			}
		}
	})
}
