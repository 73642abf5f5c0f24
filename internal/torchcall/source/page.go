package source

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/torchcall"
)

var place = regexp.MustCompile(`<!-- (rows: |)([^>]+) -->`)

// sectionsOf are the sections that a page has rows of.
func sectionsOf(prose string) (list []string) {
	for _, m := range place.FindAllStringSubmatch(prose, -1) {
		if m[1] != "" {
			list = append(list, m[2])
		}
	}
	return list
}

// writePage puts the tables into the prose.
func writePage(t *torchcall.Table, prose string) (page string, err error) {
	page = place.ReplaceAllStringFunc(prose, func(s string) string {
		m := place.FindStringSubmatch(s)
		switch {
		case m[1] != "":
			return rowsOf(t, slices.Index(t.Sections, m[2]))
		case m[2] == "differences":
			return differencesOf(t)
		case m[2] == "reasons":
			return reasonsOf(t)
		case m[2] == "groups":
			return groupsOf(t)
		}
		err = fmt.Errorf("page.md: nothing is known to put into %s", s)
		return ""
	})
	return page, err
}

func rowsOf(t *torchcall.Table, section int) string {
	var b strings.Builder
	b.WriteString("| PyTorch | Warpline | Note |\n|---|---|---|\n")
	for _, r := range t.Rows {
		if r.Section != section {
			continue
		}
		cell := r.Cell
		if cell == "" {
			cell = spans(r.PyTorch)
		}
		note := ""
		if r.Note != "" {
			note = " " + r.Note
		}
		fmt.Fprintf(&b, "| %s | %s |%s |\n", cell, spans(r.Go), note)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func spans(list []string) string {
	return "`" + strings.Join(list, "`, `") + "`"
}

func differencesOf(t *torchcall.Table) string {
	var b strings.Builder
	b.WriteString("| | PyTorch | here |\n|---|---|---|\n")
	for _, d := range t.Differences {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", d.What, d.PyTorch, d.Here)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// reasonsOf is a table of what is not here, with all names that a reason is of.
func reasonsOf(t *torchcall.Table) string {
	of := make([][]string, len(t.Reasons))
	for _, name := range slices.Sorted(maps.Keys(t.Names)) {
		if why := t.Names[name].Why; why > 0 {
			of[why-1] = append(of[why-1], strings.TrimPrefix(name, "torch."))
		}
	}
	var b strings.Builder
	b.WriteString("| torch. | why, and what instead |\n|---|---|\n")
	for i, names := range of {
		if len(names) > 0 {
			fmt.Fprintf(&b, "| %s | %s |\n", spans(names), t.Reasons[i])
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func groupsOf(t *torchcall.Table) string {
	var b strings.Builder
	b.WriteString("| | names | here | nearest way | not here |\n|---|---:|---:|---:|---:|\n")
	for _, g := range t.Groups() {
		fmt.Fprintf(&b, "| `%s` | %d | %d | %d | %d |\n", g.Name, g.Names, g.Here, g.Nearest, g.Not)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
