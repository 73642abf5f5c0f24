// Package web serves pages of this program to browsers and scrapers on the same machine, and to others only where somebody
// said so.
package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/advice"
)

// Server is one that serves.
type Server struct {
	URL string // of its first page
	srv *http.Server
	l   net.Listener
}

// Listen takes an address, of which a host that is left out is this machine alone: "127.0.0.1:8080", "localhost:0", ":8080",
// "8080". Port 0 is any that is free.
func Listen(addr string) (*Server, error) {
	const hint = "give an address as 127.0.0.1:8080, or port 0 for any that is free"
	full := addr
	if !strings.Contains(addr, ":") {
		full = ":" + addr
	}
	host, port, err := net.SplitHostPort(full)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return nil, advice.Failf(hint, "--listen %q is no address", addr)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		if inUse(err) {
			return nil, advice.Failf("give another port, or 0 for any that is free", "--listen %s: the port is in use", addr)
		}
		return nil, advice.Failf(hint, "--listen %s: %v", addr, cause(err))
	}
	return &Server{URL: "http://" + l.Addr().String() + "/", l: l}, nil
}

// cause is an error without what net adds to it.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// policy lets a page use nothing but what this server has.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Serve answers with h until Close. It returns at once. What h is asked has passed the guard: a host that is this machine by
// name or number, for what changes something a page of this server, and no other site's page for what is read either, unless
// somebody follows its link: to be read changes something too, as who looks on costs the run time.
func (s *Server) Serve(h http.Handler) {
	s.srv = &http.Server{Handler: s.guard(h), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 15}
	go s.srv.Serve(s.l) // which ends with Close
}

// Local reports whether only this machine can reach the server.
func (s *Server) Local() bool { return s.l.Addr().(*net.TCPAddr).IP.IsLoopback() }

// Close stops serving; who is being answered has a moment to end.
func (s *Server) Close() {
	if s.srv == nil {
		s.l.Close()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if s.srv.Shutdown(ctx) != nil {
		s.srv.Close()
	}
}

func (s *Server) guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		switch {
		case !s.known(r.Host):
			http.Error(w, "this server goes by its number or localhost, not by "+r.Host, http.StatusForbidden)
		case !safe(r.Method) && !same(r):
			http.Error(w, "only a page of this server may do that", http.StatusForbidden)
		case foreign(r) && !followed(r):
			http.Error(w, "another site's page may not read this", http.StatusForbidden)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

func safe(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// known reports whether a request's host is a number or localhost. A name could be another site's, whose owner lets it point
// here (DNS rebinding), so that the site's pages read what is served.
func (s *Server) known(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.Trim(name, "[]")
	_, err = netip.ParseAddr(name)
	return err == nil || strings.EqualFold(name, "localhost")
}

// foreign reports whether a browser asks for a page of another site, or of another port of this machine, which is the same site.
func foreign(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site"
}

// followed reports whether what is asked for becomes the page of a tab; frames within a page navigate too, to another destination.
func followed(r *http.Request) bool {
	into := r.Header.Get("Sec-Fetch-Dest")
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && (into == "" || into == "document")
}

// same reports whether a request is no other site's: its origin, where the browser tells one, is this server.
func same(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true // no browser's: browsers tell the origin of each POST
	}
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == "http" && u.Host == r.Host
}
