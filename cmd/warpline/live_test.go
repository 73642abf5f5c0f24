package main

import (
	"encoding/json"
	"net"
	"os"
	"strings"
	"testing"
)

// TestListen: the page's address comes first, and the run is as any other.
func TestListen(t *testing.T) {
	newRoom(t)
	code, out, _ := command(t.Context(), "train", "mlp", "--steps", "3", "--batch", "8", "--order", "sequential", "--json", "--listen", "127.0.0.1:0")
	first, rest, _ := strings.Cut(out, "\n")
	var told struct{ URL string }
	if err := json.Unmarshal([]byte(first), &told); err != nil || code != exitDone || !strings.HasPrefix(told.URL, "http://127.0.0.1:") {
		t.Errorf("%d %v %s", code, err, first)
	}
	if strings.Count(rest, `"step":`) < 3 || !strings.Contains(rest, `"final":true`) {
		t.Error(rest)
	}
	if _, err := net.Dial("tcp", strings.Trim(strings.TrimPrefix(told.URL, "http://"), "/")); err == nil {
		t.Error("the page outlives the command")
	}
}

// TestListenInUse: a port in use, or none, ends the command before there is a run.
func TestListenInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	newRoom(t)
	for addr, want := range map[string]string{l.Addr().String(): "in use", "nowhere:x": "nowhere:x"} {
		code, out, errs := command(t.Context(), "train", "mlp", "--listen", addr)
		if code != exitFailed || out != "" || strings.Count(errs, "\n") != 2 || !strings.Contains(errs, want) {
			t.Errorf("%s: %d\n%s%s", addr, code, out, errs)
		}
		if _, err := os.Stat("runs"); err == nil {
			t.Error("a run folder is there")
		}
	}
}
