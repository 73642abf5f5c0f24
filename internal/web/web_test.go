package web

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func serve(t *testing.T) *Server {
	t.Helper()
	s, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
	t.Cleanup(s.Close)
	return s
}

func TestGuard(t *testing.T) {
	s := serve(t)
	at := s.l.Addr().String()
	_, port, _ := net.SplitHostPort(at)
	for _, test := range []struct {
		name, method, host string
		header             map[string]string
		want               int
	}{
		{"page", "GET", at, nil, 200},
		{"by name", "GET", "localhost:" + port, nil, 200},
		{"version 6", "GET", "[::1]:" + port, nil, 200},
		{"rebound name", "GET", "evil.example:" + port, nil, 403},
		{"no host", "GET", "evil.example", nil, 403},
		{"POST of a tool", "POST", at, nil, 200},
		{"POST of our page", "POST", at, map[string]string{"Origin": "http://" + at, "Sec-Fetch-Site": "same-origin"}, 200},
		{"POST of another site", "POST", at, map[string]string{"Origin": "http://evil.example"}, 403},
		{"POST of another port", "POST", at, map[string]string{"Origin": "http://127.0.0.1:1"}, 403},
		{"POST of a sandbox", "POST", at, map[string]string{"Origin": "null"}, 403},
		{"POST by a link", "POST", at, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"POST to a rebound name", "POST", "evil.example:" + port, map[string]string{"Origin": "http://evil.example:" + port}, 403},
		{"read by our page", "GET", at, map[string]string{"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, 200},
		{"address bar", "GET", at, map[string]string{"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200},
		{"link of another site", "GET", at, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200},
		{"link of another port", "GET", at, map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"}, 200},
		{"frame of another site", "GET", at, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403},
		{"stream of another site", "GET", at, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "empty"}, 403},
		{"stream of another port", "GET", at, map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, 403},
		{"image of another site", "GET", at, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, 403},
		{"HEAD of another site", "HEAD", at, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403},
		{"POST by a link of another site", "POST", at, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 403},
		{"DELETE of another site", "DELETE", at, map[string]string{"Origin": "http://evil.example"}, 403},
	} {
		r, err := http.NewRequest(test.method, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = test.host
		for k, v := range test.header {
			r.Header.Set(k, v)
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if got.StatusCode != test.want || !strings.HasPrefix(got.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %d, want %d; %v", test.name, got.StatusCode, test.want, got.Header)
		}
	}
}

func TestListenErrors(t *testing.T) {
	s := serve(t)
	at := strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/")
	for addr, want := range map[string]string{at: "in use", "127.0.0.1:x": "127.0.0.1:x", "1.2.3.4.5:1": "1.2.3.4.5", "a:b:c": "no address", ":99999": "99999", "nonsense": `"nonsense" is no address`} {
		if s, err := Listen(addr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %v", addr, s, err)
		}
	}
	for _, addr := range []string{":0", "0", "localhost:0"} {
		s, err := Listen(addr)
		if err != nil {
			t.Errorf("%s: %v", addr, err)
			continue
		}
		if !s.Local() {
			t.Errorf("%s is open to others: %s", addr, s.URL)
		}
		s.Close()
	}
}
