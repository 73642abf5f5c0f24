package lab

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/web"
)

// mostCommands is how many commands run at a time.
const mostCommands = 3

// widget answers with what its command prints, to the letter. The command line is in a header, and so is its exit status: 1 is that it
// found something. A command that cannot do what it is asked is an error of who asks.
func (s *Server) widget(w http.ResponseWriter, r *http.Request) {
	x := find(r.PathValue("id"))
	if x == nil || x.Session {
		web.Refuse(w, http.StatusNotFound, advice.Failf("docs/lab.md lists them", "there is no widget of that name"))
		return
	}
	args, err := x.arguments(r.URL.Query(), &s.files)
	if err != nil {
		web.Refuse(w, http.StatusBadRequest, err)
		return
	}
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	case <-r.Context().Done():
		return // a later question has come
	}
	var out, said bytes.Buffer
	status := s.config.Command(r.Context(), append(args, "--json"), &out, &said)
	if r.Context().Err() != nil {
		return
	}
	w.Header().Set("Warpline-Command", Quote(args))
	if status > 1 {
		web.Refuse(w, http.StatusUnprocessableEntity, told(said.String()))
		return
	}
	kind := "application/json"
	if x.Lines {
		kind = "application/x-ndjson"
	}
	w.Header().Set("Content-Type", kind)
	if status == 1 {
		w.Header().Set("Warpline-Found", "true")
	}
	_, _ = w.Write(out.Bytes()) // who asked may have gone
}

// told is the error and the hint that a command ended with.
func told(said string) *advice.Error {
	e := &advice.Error{Text: "the command failed"}
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "error: "); ok {
			e.Text, e.Hint = rest, ""
		}
		if rest, ok := strings.CutPrefix(line, "hint: "); ok {
			e.Hint = rest
		}
	}
	return e
}

// Quote is a command line of this program as a shell takes it, in ASCII.
func Quote(args []string) string {
	words := []string{"warpline"}
	for _, a := range args {
		if made("/._-+,:@%=[]")(strings.TrimLeft(a, "-/")) {
			words = append(words, a)
		} else {
			words = append(words, "'"+strings.ReplaceAll(a, "'", `'\''`)+"'")
		}
	}
	return strings.Join(words, " ")
}

// find is a widget by its name.
func find(id string) *widget {
	for i := range pages() {
		for k := range pages()[i].Widgets {
			if w := &pages()[i].Widgets[k]; w.ID == id {
				return w
			}
		}
	}
	return nil
}

// listed is a widget for scripts.
type listed struct {
	ID       string          `json:"id"`
	Page     string          `json:"page"`
	Title    string          `json:"title"`
	Command  []string        `json:"command"`
	Measured bool            `json:"measured"`        // two answers differ
	Needs    string          `json:"needs,omitempty"` // a control without which nothing is asked
	Controls []listedControl `json:"controls"`
	Presets  []string        `json:"presets"` // queries
}

type listedControl struct {
	Name    string   `json:"name"`
	Kind    kind     `json:"kind"`
	Value   string   `json:"value"`
	Min     float64  `json:"min"`
	Max     float64  `json:"max"`
	Options []string `json:"options,omitempty"`
}

// list answers with all widgets.
func list(w http.ResponseWriter, _ *http.Request) {
	all := []listed{}
	for _, p := range pages() {
		for _, x := range p.Widgets {
			if x.Session {
				continue
			}
			l := listed{x.ID, "/explore/" + p.ID, x.Title, strings.Fields(x.Command), x.Measured, x.Needs, []listedControl{}, []string{}}
			for i := range x.Controls {
				c := &x.Controls[i]
				l.Controls = append(l.Controls, listedControl{c.Name, c.Kind, c.Value, c.Min, c.Max, c.options()})
			}
			for _, preset := range x.Presets {
				l.Presets = append(l.Presets, preset.Set)
			}
			all = append(all, l)
		}
	}
	web.Send(w, http.StatusOK, all)
}
