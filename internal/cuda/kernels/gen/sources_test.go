package main

import (
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tokens are those of a program with their lines, without comments.
func tokens(text []byte) (list []string) {
	var s scanner.Scanner
	set := token.NewFileSet()
	s.Init(set.AddFile("", set.Base(), len(text)), text, nil, 0)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return list
		}
		list = append(list, strconv.Itoa(set.Position(pos).Line)+" "+tok.String()+" "+lit)
	}
}

// TestWithoutComments: programs are the same ones at the same lines, and have what the go command reads.
func TestWithoutComments(t *testing.T) {
	less := 0
	for _, pattern := range []string{"../../*/*.go", "../../../cpu/kernels/*.go", "../../../gpusim/*/*.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatal(pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			bare := withoutComments(text)
			less += len(text) - len(bare)
			if !slices.Equal(tokens(text), tokens(bare)) || strings.Count(string(text), "\n//go:") != strings.Count(string(bare), "\n//go:") {
				t.Errorf("%s is another program without comments", name)
			}
		}
	}
	if less == 0 {
		t.Error("no comment was left out")
	}
}

// TestListed: the packages are those of the target, whatever this system is.
func TestListed(t *testing.T) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(dir)) // where gen runs
	for target, file := range map[string]string{"linux/amd64": "os_other.go", "windows/amd64": "os_windows.go", "darwin/arm64": "os_other.go"} {
		packages, err := listed([]string{modulePath + "/internal/durable"}, target)
		if err != nil || len(packages) != 1 || !slices.Contains(packages[0].GoFiles, file) {
			t.Errorf("%s: %v, %v", target, packages, err)
		}
	}
	if _, err := listed(nil, "plan9"); err == nil || !strings.Contains(err.Error(), "linux/amd64") {
		t.Errorf("a target without a processor: %v", err)
	}
}
