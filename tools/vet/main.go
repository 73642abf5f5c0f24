// Vet is go vet for other systems and other tags. It reads everything from source in one process, where go vet compiles the whole
// program for each of them and starts itself again for each package: with a fifth of the work it finds the same.
//
//	vet SYSTEM/ARCHITECTURE[,TAG]...
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/packages"
)

func main() {
	failed := false
	for _, target := range os.Args[1:] {
		found, err := check(target)
		if err != nil {
			found = append(found, err.Error())
		}
		for _, f := range found {
			fmt.Fprintf(os.Stderr, "%s: %s\n", target, f)
		}
		failed = failed || len(found) > 0
	}
	if failed {
		os.Exit(1)
	}
}

// check is what there is to say of this module's packages and their tests, as they are for a target.
func check(target string) (found []string, err error) {
	target, tags, _ := strings.Cut(target, ",")
	system, architecture, ok := strings.Cut(target, "/")
	if !ok {
		return nil, errors.New("want SYSTEM/ARCHITECTURE, and a tag after a comma")
	}
	roots, err := packages.Load(&packages.Config{
		Mode:       packages.LoadAllSyntax | packages.NeedModule,
		Dir:        "..",
		Env:        append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+architecture),
		BuildFlags: []string{"-tags=" + tags},
		Tests:      true,
	}, "./...")
	if err == nil && len(roots) == 0 {
		err = errors.New("there are no packages")
	}
	if err != nil {
		return nil, err
	}
	for _, p := range roots {
		for _, e := range p.Errors {
			found = append(found, e.Error())
		}
		found = append(found, bodyless(p)...)
	}
	if len(found) > 0 {
		slices.Sort(found)
		return slices.Compact(found), nil
	}
	graph, err := checker.Analyze(vet.Suite, withTests(roots), nil)
	if err != nil {
		return nil, err
	}
	for _, a := range graph.Roots {
		if a.Err != nil {
			found = append(found, fmt.Sprintf("%s: %v", a, a.Err))
		}
		for _, d := range a.Diagnostics {
			found = append(found, fmt.Sprintf("%s: %s", a.Package.Fset.Position(d.Pos), d.Message))
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// bodyless are functions without a body in a package without assembly: a compiler refuses them, and whoever reads types does not.
func bodyless(p *packages.Package) (found []string) {
	if slices.ContainsFunc(p.OtherFiles, func(name string) bool { return strings.HasSuffix(name, ".s") }) {
		return nil
	}
	for _, f := range p.Syntax {
		linked := map[string]bool{}
		for _, group := range f.Comments {
			for _, c := range group.List {
				if words := strings.Fields(c.Text); len(words) > 2 && words[0] == "//go:linkname" {
					linked[words[1]] = true
				}
			}
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body == nil && !linked[fn.Name.Name] {
				found = append(found, fmt.Sprintf("%s: %s has no body, and the package no assembly", p.Fset.Position(fn.Pos()), fn.Name.Name))
			}
		}
	}
	return found
}

// withTests leaves out what is there once more: packages with their tests, and the programs that run tests.
func withTests(all []*packages.Package) []*packages.Package {
	tested := map[string]bool{}
	for _, p := range all {
		tested[p.PkgPath] = tested[p.PkgPath] || p.ForTest == p.PkgPath
	}
	return slices.DeleteFunc(all, func(p *packages.Package) bool {
		return strings.HasSuffix(p.ID, ".test") || p.ForTest == "" && tested[p.PkgPath]
	})
}
