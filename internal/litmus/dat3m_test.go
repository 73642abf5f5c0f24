package litmus

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The published tests are not in this tree, only what they come to. To compare again, or anew:
//
//	git clone https://github.com/hernanponcedeleon/Dat3M && git -C Dat3M checkout COMMIT
//	go test ./internal/litmus -run Dat3M -args -dat3m $PWD/Dat3M [-update COMMIT]
var (
	dat3m  = flag.String("dat3m", "", "folder of Dat3M, at the commit that testdata/dat3m.txt names")
	update = flag.String("update", "", "write testdata/dat3m.txt for this commit")
)

const (
	published = "testdata/dat3m.txt"
	expected  = "dartagnan/src/test/resources/PTXv7_5-expected.csv"
)

// verdictOf checks one published test: its hash, and 1 if the condition is as its quantifier says, as in Dat3M's list.
func verdictOf(t *testing.T, name string) (hash string, holds byte) {
	text, err := os.ReadFile(filepath.Join(*dat3m, name))
	if err != nil {
		t.Fatal(err)
	}
	test, err := Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Check(t.Context(), test, Options{})
	if err != nil {
		t.Fatal(name, err)
	}
	holds = '0'
	if r.Holds {
		holds = '1'
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))[:16], holds
}

// TestDat3M: the published tests that are on record agree; with their folder, they are checked again.
func TestDat3M(t *testing.T) {
	if *update != "" {
		record(t)
	}
	text, err := os.ReadFile(published)
	if err != nil {
		t.Fatal(err)
	}
	agree, allowed := 0, 0
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line) // hash, Dat3M's verdict, ours, file
		if len(f) != 4 {
			t.Fatalf("%q", line)
		}
		if f[1] != f[2] {
			t.Errorf("%s: Dat3M says %s, we %s", f[3], f[1], f[2])
		}
		if *dat3m != "" {
			if hash, holds := verdictOf(t, f[3]); hash != f[0] || f[2] != string(holds) {
				t.Errorf("%s: hash %s, verdict %c; on record %s", f[3], hash, holds, line)
			}
		}
		agree++
		if f[1] == "1" {
			allowed++
		}
	}
	if agree < 60 || allowed == agree || allowed == 0 {
		t.Errorf("%d tests, of which %d hold", agree, allowed)
	}
}

func record(t *testing.T) {
	list, err := os.ReadFile(filepath.Join(*dat3m, expected))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# github.com/hernanponcedeleon/Dat3M %s\n# %s: start of the file's SHA-256, the verdict there, ours, the file\n", *update, expected)
	for _, line := range strings.Fields(string(list)) {
		name, want, ok := strings.Cut(line, ",")
		if !ok {
			t.Fatalf("%q", line)
		}
		hash, holds := verdictOf(t, name)
		fmt.Fprintf(&b, "%s %s %c %s\n", hash, want, holds, name)
	}
	if err := os.WriteFile(published, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}
