package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/litmus"
)

// TestSimLitmus: what the command says of several tests, its exit status, and its JSON.
func TestSimLitmus(t *testing.T) {
	r := simRoom(t)
	text, err := os.ReadFile("MP-fences.litmus")
	r.check(err)
	r.file("broken.litmus", bytes.Replace(text, []byte("st.volatile"), []byte("st.weak"), 1))
	status, stdout, _ := command(t.Context(), "sim", "litmus", "lock.litmus", "MP-fences.litmus")
	if status != exitDone || stdout != "lock: always so: as the test says\nMP-fences: forbidden: as the test says\n2 of 2 tests are as they say\n" {
		t.Errorf("%d\n%s", status, stdout)
	}
	status, stdout, _ = command(t.Context(), "sim", "litmus", "lock.litmus", "broken.litmus")
	if status != exitFound || !strings.Contains(stdout, "MP-fences: allowed: the test says otherwise\n") || !strings.Contains(stdout, "P1.1  ld.volatile r0, flag  reads 1 from P0.3\n") {
		t.Errorf("%d\n%s", status, stdout)
	}
	status, stdout, _ = command(t.Context(), "sim", "litmus", "--json", "--weaken", "lock.litmus", "broken.litmus")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if status != exitFound || len(lines) != 3 || lines[2] != `{"final":true,"tests":2,"holding":1}` {
		t.Fatalf("%d\n%s", status, stdout)
	}
	var lock, broken litmus.Result
	r.check(json.Unmarshal([]byte(lines[0]), &lock))
	r.check(json.Unmarshal([]byte(lines[1]), &broken))
	if !lock.Holds || lock.Reached || lock.File != "lock.litmus" || len(lock.Refusals) == 0 || len(lock.Mutants) == 0 {
		t.Errorf("%s", lines[0])
	}
	if w := broken.Witness; broken.Holds || w == nil || len(w.Events) != 8 || *w.Events[5].From != 4 || w.Final[0].Value != 1 {
		t.Errorf("%s", lines[1])
	}
}
