package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/warpline-ml/warpline/bench/peer"
)

// goPeer is another library in Go.
type goPeer struct {
	name string
	*peer.Peer
}

// goPeers builds the program of package gopeers, a module of its own, and starts it for each library of a list.
func goPeers(list string) (out []goPeer) {
	if list == "" {
		return nil
	}
	dir, err := os.MkdirTemp("", "warpline-gopeers")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/warpline-ml/warpline").Output()
	if err != nil {
		log.Fatalf("-go wants the project's folder to build in: %v", err)
	}
	program := filepath.Join(dir, "gopeers")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = filepath.Join(strings.TrimSpace(string(root)), "bench", "cpu", "gopeers")
	if text, err := build.CombinedOutput(); err != nil {
		log.Fatalf("go build in %s: %v\n%s", build.Dir, err, text)
	}
	for _, name := range strings.Split(list, ",") {
		out = append(out, goPeer{name, peer.Start(exec.Command(program, name))})
	}
	return out
}

// otherGo prints a line for each library that has a row; they are shown, not judged.
func (r *runner) otherGo(res *result, turns int) {
	ours := peer.Median(res.ours)
	for _, p := range r.others {
		var all []float64
		for range shown {
			s := ask(p.Peer, res.row, "nchw", res.threads, turns)
			if s < 0 {
				break
			}
			all = append(all, s)
		}
		if len(all) == shown {
			theirs := peer.Median(all)
			r.line(res.row.title(), fmt.Sprint(res.threads), duration(res.scaled(theirs))+" "+p.name, "", duration(res.scaled(ours)), fmt.Sprintf("%.2f", theirs/ours), "", "", "")
		}
	}
}
