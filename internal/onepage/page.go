package onepage

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/prof"
)

//go:embed page.html
var page string

// parsed is the template of the page, which other commands need not parse.
var parsed = sync.OnceValue(func() *template.Template { return template.Must(template.New("page").Funcs(functions).Parse(page)) })

var functions = template.FuncMap{
	"seconds": func(s float64) string { return render.Duration(time.Duration(s * 1e9)) }, "bytes": render.Bytes, "count": func(n int) string { return render.Count(int64(n)) },
	"percent":   func(a, b float64) string { return fmt.Sprintf("%.0f %%", 100*a/b) },
	"width":     func(share float64) string { return fmt.Sprintf("%.2f", 100*min(max(share, 0), 1)) },
	"join":      func(list []string) string { return strings.Join(list, "; ") },
	"sentence":  sentence,
	"gigaflops": gigaflops,
	"svg":       func(s string) template.HTML { return template.HTML(s) }, // our own pictures, whose texts are escaped
	"until":     func(t *prof.Timeline) float64 { return t.At[len(t.At)-1].Seconds() },
}

// sentence begins with a capital.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func gigaflops(f float64) string { return fmt.Sprintf("%.3g", f/1e9) }

// WriteHTML writes the page: one file that fetches nothing and runs nothing, for screens, phones and paper.
func (r *Report) WriteHTML(w io.Writer) error { return parsed().Execute(w, r) }
