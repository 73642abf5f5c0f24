package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/cuda/kernels"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/lzma"
	"github.com/warpline-ml/warpline/internal/tables"
)

// archive packs what a release has packed: tables of other packages, and the index and the modules of all targets, as one stream, since
// modules are alike: by themselves they would take more than twice the room. The sources are those of a program for a target.
func archive(target string) error {
	index, whole := committed()
	if !whole {
		return errors.New("index.json cannot be read; run go generate ./internal/cuda/kernels")
	}
	names, lines := []string{"kernels.json"}, []string(nil)
	for _, m := range index.Modules {
		form := m.Path(".ptx")
		if _, err := os.Stat(form); err != nil {
			form = m.Path(".edits")
		}
		names, lines = append(names, form), append(lines, m.Path(".lines"))
	}
	for _, name := range tables.Packed() {
		path := filepath.Join(module, filepath.FromSlash(name))
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := pack(path+".lzma", text); err != nil {
			return err
		}
	}
	folders, err := tables.ArchiveFolders(os.DirFS(module))
	if err != nil {
		return err
	}
	if err := pack(filepath.Join(module, "internal", "tables", "folders.pack"), folders); err != nil {
		return err
	}
	files, err := tables.Archive(os.DirFS("."), append(names, lines...))
	if err != nil {
		return err
	}
	if err := pack("kernels.pack", files); err != nil {
		return err
	}
	copied, err := sourceArchive(target)
	if err != nil {
		return err
	}
	return pack(filepath.Join(module, "internal", "sources", "sources.pack"), copied)
}

// pack writes a text as a release has it, unless that is what is there: it takes a second for some hundred kilobytes, and unpacking none.
func pack(path string, text []byte) error {
	if packed, err := os.ReadFile(path); err == nil {
		if was, err := lzma.Decode(packed); err == nil && bytes.Equal(was, text) {
			return nil
		}
	}
	return writeWhole(path, tables.Pack(text))
}

// module is its root, from the folder that gen runs in.
var module = filepath.Join("..", "..", "..")

func writeWhole(path string, content []byte) error {
	return durable.WriteFile(path, func(w io.Writer) error { _, err := w.Write(content); return err })
}

// compare prints the kernels whose instructions are others in number than in a commit.
func compare(w io.Writer, commit string) error {
	text, err := exec.Command("git", "show", commit+":./index.json").Output()
	if err != nil {
		fmt.Fprintf(w, "%s has no index of kernels\n", commit)
		return nil
	}
	old, err := kernels.ParseIndex(text)
	if err != nil {
		return fmt.Errorf("index.json of %s: %w", commit, err)
	}
	now, _ := committed()
	differences(w, counts(old), counts(now))
	return nil
}

// counts are the instructions by class of all kernels, by "target module kernel".
func counts(ix *kernels.Index) map[string]map[string]int {
	all := map[string]map[string]int{}
	for _, m := range ix.Modules {
		for _, k := range m.Kernels {
			all[m.Target+" "+m.Name+" "+k.Name] = k.Instructions
		}
	}
	return all
}

func differences(w io.Writer, before, after map[string]map[string]int) {
	names := maps.Clone(before)
	maps.Copy(names, after)
	n, sum := 0, 0
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, is := before[name], after[name]
		if maps.Equal(was, is) {
			continue
		}
		n++
		sum += total(is) - total(was)
		fmt.Fprintf(w, "%s: %d → %d instructions%s\n", name, total(was), total(is), classes(was, is))
	}
	fmt.Fprintf(w, "%d of %d kernels have other numbers of instructions, %+d in all\n", n, len(after), sum)
}

func total(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// classes tells the classes that differ: "; load +2, integer -1".
func classes(was, is map[string]int) string {
	all := maps.Clone(was)
	if all == nil {
		all = map[string]int{}
	}
	maps.Copy(all, is)
	var words []string
	for _, c := range slices.Sorted(maps.Keys(all)) {
		if d := is[c] - was[c]; d != 0 {
			words = append(words, fmt.Sprintf("%s %+d", c, d))
		}
	}
	return "; " + strings.Join(words, ", ")
}
