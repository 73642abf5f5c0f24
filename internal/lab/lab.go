// Package lab serves the lab: pages in the binary on which machines and kernels can be played with, and lessons.
//
//	lab.go      the server, who may ask it, and how much at a time
//	page.go     the frame of every page
//	widgets.go  controls, and the command line that they make
//	assets      pages.json, the table of widgets; scripts and styles
//	explore.go  the pages on which they stand
//	api.go      what scripts ask: the JSON of these commands
//	sim.go      kernels, step by step
//	training.go a training, and its live view
//	trace.go    traces, looked at closely
//	files.go    what people drop on a page
//
// Nothing is computed here. A widget is a command line of this program with its --json: what a page shows is what the command
// tells, by construction, and each page says which command that is. The events of a trace are too many for that: pages ask package
// kineto for what a window shows.
package lab

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/web"
)

// Command runs a command line of this program and returns its exit status.
type Command func(ctx context.Context, args []string, stdout, stderr io.Writer) int

// Config is what a lab is made of.
type Config struct {
	Listen  string // an address of this machine
	Dir     string // where files of people and their progress are kept
	Command Command
	Version string
}

// Server is a lab. Its methods that add to it are called before Serve.
type Server struct {
	config Config
	web    *web.Server
	token  string
	mux    *http.ServeMux
	links  []link
	large  []string // prefixes of what takes large bodies
	files  files
	busy   chan struct{}
	sims   sims
	runs   runs
	views  views
}

// link is an entry of the navigation.
type link struct{ path, title string }

// New listens. An address that others reach is refused: what a lab runs is run as the user who started it.
func New(c Config) (*Server, error) {
	server, err := web.Listen(c.Listen)
	if err != nil {
		return nil, err
	}
	if !server.Local() {
		server.Close()
		return nil, advice.Failf("give an address as 127.0.0.1:8080, or port 0 for any that is free; ssh -L brings it to another machine",
			"--listen %s: others would reach the lab, and it runs programs", c.Listen)
	}
	s := &Server{config: c, web: server, token: rand.Text(), mux: http.NewServeMux(), busy: make(chan struct{}, mostCommands), views: views{reading: make(chan struct{}, 1)}}
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the name is right
	}
	s.mux.Handle("GET /assets/", http.StripPrefix("/assets/", http.FileServerFS(files)))
	s.mux.HandleFunc("GET /{$}", s.home)
	if err := s.explorers(); err != nil {
		server.Close()
		return nil, err
	}
	return s, nil
}

// URL is where the lab is, for a browser that has no cookie yet.
func (s *Server) URL() string { return s.web.URL + "?token=" + url.QueryEscape(s.token) }

// Dir is where files of people and their progress are kept.
func (s *Server) Dir() string { return s.config.Dir }

// Handle adds pages or answers of other packages, as http.ServeMux has it. What asks them has the token, and a body of at most
// MostBody bytes.
func (s *Server) Handle(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

// Link adds an entry to the navigation.
func (s *Server) Link(path, title string) { s.links = append(s.links, link{path, title}) }

// Serve answers until Close. It returns at once.
func (s *Server) Serve() { s.web.Serve(s.Handler()) }

// Close stops serving, and ends what runs for pages.
func (s *Server) Close() {
	s.web.Close()
	s.sims.close()
	s.runs.close()
	s.views.close()
}

// MostBody is how many bytes a request may have that is no file.
const MostBody = 1 << 20

// Handler is everything, behind the guard for the token and the size of requests. The guard against other sites is package web's.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		most := int64(MostBody)
		for _, prefix := range s.large {
			if strings.HasPrefix(r.URL.Path, prefix) {
				most = mostFile
			}
		}
		switch {
		case s.enter(w, r):
		case !s.known(r):
			web.Refuse(w, http.StatusForbidden, advice.Failf("open the address that warpline lab has printed, which has one", "this browser has no token"))
		case r.ContentLength > most:
			web.Refuse(w, http.StatusRequestEntityTooLarge, advice.Failf(fmt.Sprintf("%d are taken", most), "a request of %d bytes", r.ContentLength))
		default:
			r.Body = http.MaxBytesReader(w, r.Body, most)
			s.found(w, r)
		}
	})
}

// cookie is the name of ours. Ports share cookies, and two labs may run.
func (s *Server) cookie() string {
	_, port, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(s.web.URL, "http://"), "/"), ":")
	return "warpline-lab-" + port[strings.LastIndex(port, ":")+1:]
}

// enter takes the token out of an address into a cookie, and reports whether it did.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) bool {
	given := r.URL.Query()
	if r.Method != http.MethodGet || !s.right(given.Get("token")) {
		return false
	}
	http.SetCookie(w, &http.Cookie{Name: s.cookie(), Value: s.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	given.Del("token")
	to := url.URL{Path: "/" + strings.TrimLeft(r.URL.Path, "/"), RawQuery: given.Encode()}
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
	return true
}

func (s *Server) known(r *http.Request) bool {
	c, err := r.Cookie(s.cookie())
	return err == nil && s.right(c.Value)
}

func (s *Server) right(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 1
}
