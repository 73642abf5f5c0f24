package tables

import (
	"maps"
	"slices"
)

// kept are packed texts of this program, by their places in the module.
var kept = map[string]string{}

// Keep lets others have a packed text as it is: a copy of the sources has it from here, and the program has it once. It is called by
// the package that embeds the text, before main.
func Keep(name, packed string) { kept[name] = packed }

// Kept is a packed text by its place in the module.
func Kept(name string) string { return kept[name] }

// KeptNames are the places of all of them.
func KeptNames() []string { return slices.Sorted(maps.Keys(kept)) }
