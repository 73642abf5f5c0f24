package imports

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	block   = regexp.MustCompile("(?ms)^ *```.*?^ *```$") // code, in which nothing is a heading or a link
	quoted  = regexp.MustCompile("`[^`\n]*`")
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	unsaid  = regexp.MustCompile(`[^\pL\pN_ -]`) // what an anchor leaves out of its heading
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	named   = regexp.MustCompile(`\bdocs/[a-z-]+\.md\b(#[a-z0-9-]+)?`)
)

// TestLinks: what pages refer to is there, files and headings, and so are the pages of docs that programs and scripts name.
func TestLinks(t *testing.T) {
	b := book{t: t, root: os.DirFS(filepath.Join("..", "..")), pages: map[string]map[string]bool{}}
	texts := b.read()
	for name, text := range texts {
		for _, to := range named.FindAllString(text, -1) {
			b.follow(name, ".", to)
		}
		if b.pages[name] == nil {
			continue
		}
		folder := path.Dir(name)
		if name == "internal/torchcall/page.md" {
			folder = "docs" // of which docs/pytorch.md is made
		}
		for _, m := range link.FindAllStringSubmatch(quoted.ReplaceAllString(text, ""), -1) {
			b.follow(name, folder, m[1])
		}
	}
	if b.links < 200 {
		t.Errorf("only %d links", b.links)
	}
}

// book is the pages of the repository.
type book struct {
	t     *testing.T
	root  fs.FS
	pages map[string]map[string]bool // their anchors
	links int                        // that were followed
}

// read is the texts that may name a page, those of pages without blocks of code.
func (b *book) read() map[string]string {
	texts := map[string]string{}
	err := fs.WalkDir(b.root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "testdata" || d.Name() == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		switch ext := path.Ext(name); ext {
		case ".md", ".go", ".txt", ".py", ".cu", ".cuh", "":
			text, err := fs.ReadFile(b.root, name)
			if texts[name] = string(text); ext == ".md" {
				texts[name] = block.ReplaceAllString(string(text), "")
				b.pages[name] = anchors(texts[name])
			}
			return err
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return texts
}

// anchors are those that GitHub gives the headings of a page.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		first := strings.ReplaceAll(unsaid.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")
		anchor := first
		for n := 1; all[anchor]; n++ {
			anchor = first + "-" + strconv.Itoa(n)
		}
		all[anchor] = true
	}
	return all
}

// follow looks for what a file refers to, from a folder on.
func (b *book) follow(from, folder, to string) {
	if strings.Contains(to, ":") {
		return // elsewhere
	}
	b.links++
	file, anchor, _ := strings.Cut(to, "#")
	if file == "" {
		file = from
	} else {
		file = path.Join(folder, file)
	}
	if _, err := fs.Stat(b.root, file); err != nil {
		b.t.Errorf("%s refers to %s, which is not there", from, file)
	} else if page := b.pages[file]; page != nil && anchor != "" && !page[anchor] {
		b.t.Errorf("%s refers to %s#%s, which has no such heading", from, file, anchor)
	}
}
