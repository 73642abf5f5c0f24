package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// targets in the order of age, with the PTX version that first knew them (ptxas 12.9 refuses an empty kernel in an older one).
// Those with a suffix accept what only that architecture has.
var targets = []struct{ name, since string }{
	{"sm_70", "6.0"}, {"sm_75", "6.3"}, {"sm_80", "7.0"}, {"sm_86", "7.1"}, {"sm_87", "7.4"}, {"sm_89", "7.8"},
	{"sm_90", "7.8"}, {"sm_100", "8.6"}, {"sm_120", "8.7"}, {"sm_90a", "8.0"}, {"sm_100a", "8.6"}, {"sm_120a", "8.7"},
}

// versions of PTX that ptxas 12.9 knows, from the oldest that the table tells apart.
var versions = []string{"6.0", "6.1", "6.2", "6.3", "6.4", "6.5", "7.0", "7.1", "7.2", "7.3", "7.4", "7.5", "7.6", "7.7", "7.8",
	"8.0", "8.1", "8.2", "8.3", "8.4", "8.5", "8.6", "8.7", "8.8"}

const newest = "8.8"

// form is a candidate with what ptxas needs for it.
type form struct {
	ptx.Candidate
	minTarget, maxTarget int    // indexes of targets without a suffix; -1: only with a suffix
	suffix, lastSuffix   string // the oldest and the newest target with a suffix, asked for where there is no other
	version              string
}

// writeForms asks ptxas about every candidate of some opcodes, of all where there are none, and returns the table; the forms of
// the others are those of the old table.
func writeForms(a *assembler, only []string, old []byte) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("# Forms that ptxas 12.9 accepts, made by bench/ptx from grammar.txt: family, PTX version and target needed, keys.\n")
	keep(&out, only, old)
	var batch []ptx.Candidate
	flush := func(force bool) error {
		if len(batch) == 0 || !force && len(batch) < 50000 {
			return nil
		}
		forms, err := judgeForms(a, batch)
		batch = batch[:0]
		if err == nil {
			tabulate(&out, forms)
		}
		return err
	}
	last := ""
	for c := range ptx.Candidates() {
		op, _, _ := strings.Cut(c.Family, "#")
		if len(only) > 0 && !slices.Contains(only, op) {
			continue
		}
		if op != last {
			if err := flush(len(batch) > 20000); err != nil {
				return nil, err
			}
			last = op
		}
		batch = append(batch, c)
	}
	err := flush(true)
	return sorted(out.Bytes()), err
}

// keep copies the lines of other opcodes.
func keep(out *bytes.Buffer, only []string, old []byte) {
	for line := range bytes.Lines(old) {
		if op, _, ok := strings.Cut(string(line), "#"); ok && op != "" && len(only) > 0 && !slices.Contains(only, op) {
			out.Write(line)
		}
	}
}

// sorted puts the opcodes in the order of the alphabet behind the first line.
func sorted(table []byte) []byte {
	lines := slices.Collect(bytes.Lines(table))
	op := func(line []byte) []byte { op, _, _ := bytes.Cut(line, []byte("#")); return op }
	slices.SortStableFunc(lines[1:], func(a, b []byte) int { return bytes.Compare(op(a), op(b)) })
	return bytes.Join(lines, nil)
}

// judgeForms drops what no target accepts in the newest version, then finds the oldest version and target of the rest.
func judgeForms(a *assembler, batch []ptx.Candidate) ([]*form, error) {
	forms := make([]*form, len(batch))
	for i, c := range batch {
		forms[i] = &form{Candidate: c, minTarget: -1}
	}
	for ti, t := range targets {
		ask := forms
		if strings.HasSuffix(t.name, "a") {
			ask = slices.DeleteFunc(slices.Clone(forms), func(f *form) bool { return f.minTarget >= 0 })
		}
		vs, err := a.judge(newest, t.name, texts(ask))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		for i, v := range vs {
			if v == "" {
				ask[i].accept(ti, t.name)
			}
		}
	}
	forms = slices.DeleteFunc(forms, func(f *form) bool { return f.minTarget < 0 && f.suffix == "" })
	return forms, findVersions(a, forms)
}

func texts(forms []*form) []string {
	ts := make([]string, len(forms))
	for i, f := range forms {
		ts[i] = f.Text
	}
	return ts
}

func (f *form) accept(target int, name string) {
	if strings.HasSuffix(name, "a") {
		if f.suffix == "" {
			f.suffix = name
		}
		f.lastSuffix = name
		return
	}
	if f.minTarget < 0 {
		f.minTarget = target
	}
	f.maxTarget = target
}

// target is the oldest one that takes the form.
func (f *form) target() string {
	if f.minTarget >= 0 {
		return targets[f.minTarget].name
	}
	return f.suffix
}

// last is the newest target that takes the form.
func (f *form) last() string {
	if f.minTarget >= 0 {
		return targets[f.maxTarget].name
	}
	return f.lastSuffix
}

// findVersions asks each form's oldest target about every version from the newest down.
func findVersions(a *assembler, forms []*form) error {
	for _, t := range targets {
		group := slices.DeleteFunc(slices.Clone(forms), func(f *form) bool { return f.target() != t.name })
		for _, v := range slices.Backward(versions) {
			if len(group) == 0 || older(v, t.since) {
				break
			}
			vs, err := a.judge(v, t.name, texts(group))
			if err != nil {
				return fmt.Errorf("%s, PTX %s: %w", t.name, v, err)
			}
			rest := group[:0]
			for i, f := range group {
				if vs[i] == "" {
					f.version = v
					rest = append(rest, f)
				}
			}
			group = rest
		}
	}
	return nil
}

func older(v, w string) bool { return v < w } // all are digit.digit

// tabulate writes forms, those of one family and need on one line.
func tabulate(out *bytes.Buffer, forms []*form) {
	keys := map[string][]string{}
	var order []string
	for _, f := range forms {
		if f.version == "" {
			continue // ptxas took it once and refused it alone: it missed the error among others
		}
		need := f.Family + " " + f.version + " " + f.target()
		if last := f.last(); last != "sm_120" && last != "sm_120a" {
			need += "-" + last
		}
		if keys[need] == nil {
			order = append(order, need)
		}
		keys[need] = append(keys[need], f.Key)
	}
	for _, need := range order {
		fmt.Fprintf(out, "%s %s\n", need, strings.Join(keys[need], " "))
	}
}
