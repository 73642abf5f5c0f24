package lab

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/web"
)

// newServer is a lab whose commands say what they were asked.
func newServer(t testing.TB) *Server {
	t.Helper()
	s, err := New(Config{Listen: "127.0.0.1:0", Dir: t.TempDir(), Version: "v0", Command: func(_ context.Context, args []string, stdout, _ io.Writer) int {
		io.WriteString(stdout, `{"args":"`+strings.Join(args, " ")+`"}`+"\n")
		return 0
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// TestToken: the token of the address becomes a cookie and leaves the address; who has neither is told nothing.
func TestToken(t *testing.T) {
	s := newServer(t)
	s.Handle("GET /secret", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "secret") }))
	s.Serve()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	get := func(c *http.Client, at string) (*http.Response, string) {
		t.Helper()
		r, err := c.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r, string(text)
	}
	for _, path := range []string{"", "secret", "assets/lab.css", "secret?token=", "secret?token=wrong", "?token=" + strings.ToLower(s.token)} {
		if r, text := get(browser, s.web.URL+path); r.StatusCode != http.StatusForbidden || strings.Contains(text, s.token) {
			t.Errorf("%q without a token: %s %s", path, r.Status, text)
		}
	}
	r, _ := get(&http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, s.web.URL+"secret?token="+s.token+"&s=x")
	if to := r.Header.Get("Location"); r.StatusCode != http.StatusSeeOther || to != "/secret?s=x" {
		t.Errorf("%s to %q", r.Status, to)
	}
	if c := r.Header.Get("Set-Cookie"); !strings.Contains(c, "SameSite=Strict") || !strings.Contains(c, "HttpOnly") {
		t.Errorf("cookie %q", c)
	}
	if r, text := get(browser, s.web.URL+"secret"); r.StatusCode != http.StatusOK || text != "secret" {
		t.Errorf("with the cookie: %s %s", r.Status, text)
	}
	if _, text := get(browser, s.web.URL); !strings.Contains(text, "<main") || strings.Contains(text, s.token) {
		t.Errorf("the first page:\n%s", text)
	}
}

// TestRedirectStaysHere: whatever the path, the redirect that drops the token leads to this server.
func TestRedirectStaysHere(t *testing.T) {
	s := newServer(t)
	for _, path := range []string{"//evil.example/", `/\evil.example`, "///evil.example", "/a//b"} {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, &http.Request{Method: "GET", URL: &url.URL{Path: path, RawQuery: "token=" + s.token}, Header: http.Header{}})
		to, err := url.Parse(w.Header().Get("Location"))
		if err != nil || to.Host != "" || !strings.HasPrefix(to.String(), "/") || strings.HasPrefix(to.String(), "//") {
			t.Errorf("%q leads to %q", path, w.Header().Get("Location"))
		}
	}
}

// ask asks the handler as a page of the lab does.
func ask(s *Server, method, path string, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, body)
	r.AddCookie(&http.Cookie{Name: s.cookie(), Value: s.token})
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// TestSize: bodies that are too large are refused, whether or not they say how large they are.
func TestSize(t *testing.T) {
	s := newServer(t)
	s.Handle("POST /echo", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var v string
		if web.Body(w, r, MostBody, &v) {
			web.Send(w, http.StatusOK, len(v))
		}
	}))
	text := func(n int) []byte { return []byte(`"` + strings.Repeat("x", n-2) + `"`) }
	unsized := func(b []byte) io.Reader { return io.MultiReader(bytes.NewReader(b)) }
	for _, test := range []struct {
		body io.Reader
		want int
	}{
		{bytes.NewReader(text(MostBody)), http.StatusOK},
		{bytes.NewReader(text(MostBody + 1)), http.StatusRequestEntityTooLarge},
		{unsized(text(MostBody)), http.StatusOK},
		{unsized(text(MostBody + 1)), http.StatusRequestEntityTooLarge},
		{strings.NewReader("{"), http.StatusBadRequest},
	} {
		if w := ask(s, "POST", "/echo", test.body); w.Code != test.want {
			t.Errorf("%d, want %d: %.80s", w.Code, test.want, w.Body)
		}
	}
	r := httptest.NewRequest("POST", "/api/files", strings.NewReader("x"))
	r.ContentLength = mostFile + 1
	r.AddCookie(&http.Cookie{Name: s.cookie(), Value: s.token})
	w := httptest.NewRecorder()
	if s.Handler().ServeHTTP(w, r); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a file that is too large: %d", w.Code)
	}
}

// TestLoopback: an address that others reach is refused.
func TestLoopback(t *testing.T) {
	for _, at := range []string{"0.0.0.0:0", "[::]:0"} {
		_, err := New(Config{Listen: at, Dir: t.TempDir()})
		var known *advice.Error
		if !errors.As(err, &known) || !strings.Contains(known.Text, "others would reach") {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// TestMissing: what is not there is a page with a way back for people, and an error for scripts.
func TestMissing(t *testing.T) {
	s := newServer(t)
	s.Handle("/learn/", http.NotFoundHandler())
	for _, test := range []struct {
		method, at string
		code       int
		want       string
	}{
		{"GET", "/nothing", http.StatusNotFound, `<a href="/">The first page</a>`},
		{"GET", "/learn/nothing", http.StatusNotFound, "There is no page /learn/nothing here"},
		{"GET", "/assets/nothing.js", http.StatusNotFound, "<main"},
		{"POST", "/", http.StatusMethodNotAllowed, "<main"},
		{"GET", "/api/nothing", http.StatusNotFound, `"hint":"docs/lab.md`},
		{"GET", "/api/files", http.StatusMethodNotAllowed, `"hint":"docs/lab.md`},
		{"POST", "/api/sim", http.StatusBadRequest, `"hint":"docs/lab.md`},
		{"GET", "/assets/lab.css", http.StatusOK, "--accent"},
	} {
		w := ask(s, test.method, test.at, strings.NewReader("x=1"))
		if w.Code != test.code || !strings.Contains(w.Body.String(), test.want) || strings.Contains(w.Body.String(), "page not found") {
			t.Errorf("%s %s: %d %.300s", test.method, test.at, w.Code, w.Body)
		}
	}
}
