package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing/fstest"

	"github.com/warpline-ml/warpline/internal/sources"
	"github.com/warpline-ml/warpline/internal/tables"
)

const modulePath = "github.com/warpline-ml/warpline"

// sourceArchive is what package sources has in a program for a target, as linux/amd64: the packages that exercises and listings import,
// and what these do.
func sourceArchive(target string) ([]byte, error) {
	roots, err := imported()
	if err != nil {
		return nil, err
	}
	packages, err := listed(roots, target)
	if err != nil {
		return nil, err
	}
	files, names := fstest.MapFS{}, []string{"LICENSE", "go.mod", "go.sum"}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return nil, err
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	for _, p := range packages {
		if err := p.into(files, &names); err != nil {
			return nil, err
		}
	}
	return tables.Archive(files, names)
}

// imported are the packages of the module that programs of exercises and listings import.
func imported() (roots []string, err error) {
	var programs []string
	for _, pattern := range []string{"internal/exercise/_files/*/*.go.txt", "internal/exercise/_files/*/*/*.go.txt", "examples/lessons/l*.go"} {
		found, err := fs.Glob(os.DirFS(module), pattern)
		if err != nil || len(found) == 0 {
			return nil, fmt.Errorf("no programs are %s: %w", pattern, err)
		}
		programs = append(programs, found...)
	}
	roots = []string{modulePath + "/tensor"} // of the main program of an exported listing
	for _, name := range programs {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(module, filepath.FromSlash(name)), nil, parser.ImportsOnly)
		if err != nil {
			return nil, err
		}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return nil, err
			}
			if strings.HasPrefix(path, modulePath+"/") && !strings.HasSuffix(name, "_test.go") {
				roots = append(roots, path)
			}
		}
	}
	slices.Sort(roots)
	return slices.Compact(roots), nil
}

// source is a package as go list tells of it.
type source struct {
	ImportPath, Dir                     string
	GoFiles, SFiles, HFiles, EmbedFiles []string
	Standard                            bool
}

// listed are packages of the module and those that they need of it, as a release for a target builds them.
func listed(roots []string, target string) (packages []source, err error) {
	system, processor, ok := strings.Cut(target, "/")
	if !ok {
		return nil, fmt.Errorf("-target %s is not SYSTEM/PROCESSOR, as linux/amd64", target)
	}
	cmd := exec.Command("go", append([]string{"list", "-deps", "-tags", "packed", "-json=ImportPath,Dir,GoFiles,SFiles,HFiles,EmbedFiles,Standard"}, roots...)...)
	cmd.Dir, cmd.Stderr = module, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p source
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		if !p.Standard && strings.HasPrefix(p.ImportPath, modulePath+"/") {
			packages = append(packages, p)
		}
	}
	return packages, nil
}

// into puts the files of a package among those of the archive.
func (p source) into(files fstest.MapFS, names *[]string) error {
	folder := strings.TrimPrefix(p.ImportPath, modulePath+"/")
	for _, f := range slices.Concat(p.GoFiles, p.SFiles, p.HFiles, p.EmbedFiles) {
		name := folder + "/" + f
		if slices.Contains(elsewhere, name) {
			continue
		}
		var text []byte
		if slices.Contains(p.EmbedFiles, f) && (strings.HasSuffix(f, ".lzma") || strings.HasSuffix(f, ".pack")) {
			name += sources.Link
		} else {
			var err error
			if text, err = os.ReadFile(filepath.Join(p.Dir, f)); err != nil {
				return err
			}
		}
		if strings.HasSuffix(f, ".go") {
			text = bytes.Replace(text, []byte("//go:build packed\n"), []byte("\n"), 1) // who builds the copy gives no tag
			if strings.HasPrefix(folder, "internal/") {
				text = withoutComments(text)
			}
		}
		files[name] = &fstest.MapFile{Data: text}
		*names = append(*names, name)
	}
	return nil
}

// elsewhere are files that only texts of other packages need.
var elsewhere = []string{"internal/tables/folders.go", "internal/tables/folders_packed.go", "internal/tables/folders.pack"}

// withoutComments is a program without comments, those that say something to the go command apart. Lines keep their numbers.
func withoutComments(text []byte) []byte {
	var s scanner.Scanner
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(text))
	s.Init(file, text, nil, scanner.ScanComments)
	var out []byte
	done := 0
	for {
		pos, tok, lit := s.Scan()
		switch {
		case tok == token.EOF:
			return append(out, text[done:]...)
		case tok != token.COMMENT || strings.HasPrefix(lit, "//go:") || strings.HasPrefix(lit, "//line"):
			continue
		}
		at := file.Offset(pos)
		out = append(bytes.TrimRight(append(out, text[done:at]...), " \t"), strings.Repeat("\n", strings.Count(lit, "\n"))...)
		done = at + len(lit)
	}
}
