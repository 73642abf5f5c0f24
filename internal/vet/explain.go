package vet

import "io/fs"

// Example is a program that a rule finds something in, and the same without it, in a language: "python", "go".
type Example struct {
	Language string `json:"language"`
	Broken   string `json:"broken"`
	Mended   string `json:"mended"`
}

// Name is the language's.
func (e Example) Name() string {
	if e.Language == "go" {
		return "Go"
	}
	return "Python"
}

// Examples are those of a rule, one for each language that the rule is for.
func (r Rule) Examples() (all []Example) {
	for _, l := range []struct{ language, end string }{{"python", ".py"}, {"go", ".go.txt"}} {
		broken, err := fs.ReadFile(programs, "programs/"+r.ID+"_broken"+l.end)
		if err != nil {
			continue
		}
		mended, err := fs.ReadFile(programs, "programs/"+r.ID+"_mended"+l.end)
		if err != nil {
			continue
		}
		all = append(all, Example{l.language, string(broken), string(mended)})
	}
	return all
}
