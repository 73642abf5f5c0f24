package ptx

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

//go:embed grammar.txt
var grammarText string

// variant is one way to write an opcode: its modifier slots in canonical order and its operands.
type variant struct {
	op    string
	index int // among the variants of the opcode
	slots []slot
	rules []argRule
}

// slot is a place for one modifier.
type slot struct {
	words    []string
	optional bool
	fixed    bool   // must stand at its place, before all that are not fixed
	facets   string // the digits after "@"; "" for every facet
}

// argRule is a signature for the forms that have a modifier; any form if when is empty.
type argRule struct {
	when string
	alts [][]argSpec
}

// argSpec is one operand of a signature.
type argSpec struct {
	role     byte
	sink     bool // "_" alone is the only operand, as the first of D_ and X_
	typ      string
	count    int // registers in braces; 0 for one operand
	optional bool
	since    need // the zero value asks for nothing
	t        Type // what typ means in a form, once the checker has resolved it
}

// grammar holds the variants of each opcode, read once.
var grammar = sync.OnceValue(func() map[string][]*variant { return readGrammar(grammarText) })

func readGrammar(text string) map[string][]*variant {
	classes := map[string][]string{}
	g := map[string][]*variant{}
	for line := range strings.Lines(text) {
		head, args, isVariant := strings.Cut(strings.TrimSpace(line), " :")
		words := strings.Fields(head)
		switch {
		case len(words) == 0 || words[0][0] == '#':
		case words[0] == "class":
			classes[words[1]] = words[2:]
		case isVariant:
			v := &variant{op: words[0], index: len(g[words[0]])}
			v.slots = readSlots(strings.TrimPrefix(head, words[0]), classes)
			v.rules = readRules(args)
			g[v.op] = append(g[v.op], v)
		}
	}
	return g
}

// readSlots reads "rnd? (ftz)? T@12".
func readSlots(text string, classes map[string][]string) []slot {
	var slots []slot
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		var s slot
		if text[0] == '(' {
			list, rest, _ := strings.Cut(text[1:], ")")
			s.words, text = strings.Fields(list), rest
		} else {
			n := strings.IndexAny(text+" ", "?!@ ")
			s.words, text = classes[text[:n]], text[n:]
		}
		s.optional = strings.HasPrefix(text, "?")
		s.fixed = strings.HasPrefix(strings.TrimPrefix(text, "?"), "!")
		text = strings.TrimLeft(text, "?!")
		if strings.HasPrefix(text, "@") {
			n := strings.IndexByte(text+" ", ' ')
			s.facets, text = text[1:n], text[n:]
		}
		slots = append(slots, s)
	}
	return slots
}

// readRules reads "wide -> d:w s s ; d s s | d s".
func readRules(text string) []argRule {
	var rules []argRule
	for part := range strings.SplitSeq(text, ";") {
		when, sig, conditional := strings.Cut(part, "->")
		if !conditional {
			when, sig = "", part
		}
		r := argRule{when: strings.TrimSpace(when)}
		for alt := range strings.SplitSeq(sig, "|") {
			r.alts = append(r.alts, readArgs(alt))
		}
		rules = append(rules, r)
	}
	return rules
}

func readArgs(text string) []argSpec {
	specs := []argSpec{}
	for w := range strings.FieldsSeq(text) {
		if len(w) > 1 && w[1] != ':' && w[1] != '?' && w[1] != '_' && w[1] != '*' && w[1] != '@' {
			return []argSpec{{typ: w}} // a signature that args.go works out
		}
		w, since, _ := strings.Cut(w, "@")
		a := argSpec{role: w[0]}
		version, target, _ := strings.Cut(since, "/")
		a.since.version = versionOf(version)
		a.since.target, _ = parseTarget(target)
		w, a.optional = strings.CutSuffix(w[1:], "?")
		w, a.sink = strings.CutPrefix(w, "_")
		if i := strings.IndexByte(w, '*'); i >= 0 {
			a.count = int(w[i+1] - '0')
			w = w[:i]
		}
		a.typ = strings.TrimPrefix(w, ":")
		specs = append(specs, a)
	}
	return specs
}

// assign puts each modifier into the first free slot that takes it, whatever the order of the modifiers, fixed slots aside.
// The result has a word per slot, "" for an absent one. Where it fails, bad is the modifier that fits nowhere, or "" if a slot stayed empty.
func (v *variant) assign(mods []string) (words []string, bad string, ok bool) {
	words = make([]string, len(v.slots))
	fixed := 0
	for ; fixed < len(v.slots) && v.slots[fixed].fixed; fixed++ {
		if s := &v.slots[fixed]; len(mods) > 0 && slices.Contains(s.words, mods[0]) {
			words[fixed], mods = mods[0], mods[1:]
		}
	}
	var next [4]int // the first slot for a type, a layout and so on: these keep their order among themselves
	for n, m := range mods {
		i := fixed
		group := ordered(m)
		if group >= 0 {
			i = max(i, next[group])
		} else if slices.Contains(mods[:n], m) && (m == "sync" || m == "sat" || m == "approx") {
			continue // ptxas does not mind a word that is said twice
		}
		for i < len(words) && (words[i] != "" || !slices.Contains(v.slots[i].words, m)) {
			i++
		}
		if i == len(words) {
			return words, m, false
		}
		words[i] = m
		if group >= 0 {
			next[group] = i + 1
		}
	}
	for i, s := range v.slots {
		if words[i] == "" && !s.optional {
			return words, "", false
		}
	}
	return words, "", true
}

// ordered gives the group of a modifier that must keep its order among its like: types, matrix layouts, state spaces and
// bit operations; -1 for the others.
func ordered(mod string) int {
	switch mod {
	case "row", "col":
		return 1
	case "xor", "and", "popc":
		return 3
	}
	if ParseType(mod) != NoType {
		return 0
	}
	if _, ok := spaceOf(mod); ok {
		return 2
	}
	return -1
}

// facetCount is the number of facets of a variant.
func (v *variant) facetCount() int {
	n := 1
	for _, s := range v.slots {
		for _, c := range s.facets {
			n = max(n, int(c-'0'))
		}
	}
	return n
}

func (s *slot) in(facet int) bool {
	return s.facets == "" || strings.IndexByte(s.facets, byte('0'+facet)) >= 0
}

// key is the projection of a form onto a facet (counted from 1): the words of its slots, joined by dots.
func (v *variant) key(words []string, facet int) string {
	var b []byte
	for i := range words {
		if words[i] == "" || !v.slots[i].in(facet) {
			continue
		}
		if len(b) > 0 {
			b = append(b, '.')
		}
		b = append(b, words[i]...)
	}
	return string(b)
}

// signature is the alternatives for the operands of a form.
func (v *variant) signature(words []string) [][]argSpec {
	for _, r := range v.rules {
		if r.when == "" || slices.Contains(words, r.when) {
			return r.alts
		}
	}
	return nil
}
