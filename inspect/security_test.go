package inspect

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
)

func TestTokenMovesIntoACookie(t *testing.T) {
	store := openStore(t)
	const token = "a-token-of-128-bits"
	s := testServer(store, Token(token), Prefix("oribi/"))
	for path, header := range map[string]http.Header{
		"/oribi/":                        {},
		"/oribi/?token=":                 {},
		"/oribi/?token=a-token":          {},
		"/oribi/table?x=1":               {"Cookie": {s.guard.name + "=" + token}}, // the cookie is not the token
		"/oribi/static/style.css":        {"Authorization": {"Bearer x"}},
		"/oribi/timeline":                {"Authorization": {token}},
		"/nowhere":                       {"Cookie": {s.guard.name + "="}},
		"/oribi/?token=x&token=" + token: {},
	} {
		r := get(s, path, func(r *http.Request) { r.Header = header })
		if text := body(t, r); r.StatusCode != http.StatusForbidden ||
			strings.Contains(text, token) || len(r.Cookies()) > 0 {
			t.Errorf("%s %v: %s %s", path, header, r.Status, text)
		}
	}
	r := get(s, "/oribi/?refresh=2&token="+token)
	cookies := r.Cookies()
	if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/oribi/?refresh=2" || len(cookies) != 1 {
		t.Fatalf("%s %v", r.Status, r.Header)
	}
	c := cookies[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/oribi/" || c.Domain != "" ||
		strings.Contains(c.Value, token) || !strings.HasPrefix(c.Name, "oribi_") {
		t.Errorf("%v", c)
	}
	if r := get(s, "/oribi/?refresh=2", func(r *http.Request) {
		r.AddCookie(c)
	}); r.StatusCode != http.StatusOK || r.Header.Get("Refresh") != "2" {
		t.Errorf("with the cookie: %s", r.Status)
	}
	if r := get(s, "/oribi/", asJSON, func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+token)
	}); r.StatusCode != http.StatusOK {
		t.Errorf("with a header: %s", r.Status)
	}
	other := testServer(store, Token("another"))
	if other.guard.name == s.guard.name {
		t.Error("servers with different tokens share a cookie")
	}
}

func TestMethodsThatWriteAreRefused(t *testing.T) {
	s := testServer(openStore(t), Token("secret"))
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"} {
		for _, path := range []string{"/", "/?token=secret", "/static/style.css", "/nothing"} {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest(method, "http://localhost"+path, strings.NewReader("x=1")))
			must.Equal(t, w.Code, http.StatusMethodNotAllowed, method, path)
			must.Equal(t, w.Header().Get("Allow"), "GET, HEAD", method, path)
		}
	}
}

func TestOtherHostsAndOriginsAreRefused(t *testing.T) {
	s := testServer(openStore(t), Hosts("Inspect.Example"))
	for host, want := range map[string]int{
		"127.0.0.1": 200, "127.0.0.1:8080": 200, "127.8.9.1:1": 200, "localhost:1": 200, "LOCALHOST": 200,
		"[::1]:80": 200, "[::ffff:127.0.0.1]": 200, "inspect.example:443": 200,
		"evil.example": 421, "127.0.0.1.evil.example": 421, "localhost.evil.example": 421, "192.168.1.7": 421,
		"0.0.0.0:80": 421, "[::]:1": 421, "": 421, "evil.example@127.0.0.1": 421, "2130706433": 421,
	} {
		if r := get(s, "/", func(r *http.Request) { r.Host = host }); r.StatusCode != want {
			t.Errorf("Host %q: %s, want %d", host, r.Status, want)
		}
	}
	at := func(local string) func(r *http.Request) {
		return func(r *http.Request) {
			*r = *r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey,
				&net.TCPAddr{IP: net.ParseIP(local), Port: 80}))
			r.Host = "192.168.1.7:80"
		}
	}
	if a, b := get(s, "/", at("192.168.1.7")),
		get(s, "/", at("127.0.0.1")); a.StatusCode != 200 || b.StatusCode != 421 {
		t.Errorf("an address as Host: %s at it, %s at a loopback address", a.Status, b.Status)
	}
	for _, c := range []struct {
		name, value string
		want        int
	}{
		{"Sec-Fetch-Site", "none", 200}, {"Sec-Fetch-Site", "same-origin", 200}, {"Sec-Fetch-Site", "cross-site", 403},
		{"Sec-Fetch-Site", "same-site", 403},
		{"Origin", "http://127.0.0.1", 200}, {"Origin", "http://127.0.0.1:81", 403},
		{"Origin", "https://evil.example", 403}, {"Origin", "null", 403}, {"Origin", "", 403},
	} {
		if r := get(s, "/", func(r *http.Request) { r.Header.Set(c.name, c.value) }); r.StatusCode != c.want {
			t.Errorf("%s %q: %s, want %d", c.name, c.value, r.Status, c.want)
		}
	}
}

func TestEveryAnswerHasTheHeadersOfItsPolicy(t *testing.T) {
	s := testServer(openStore(t))
	for _, path := range []string{"/", "/nothing", "/static/style.css", "/static/icon.svg", "/table", "/?token=1"} {
		h := get(s, path).Header
		csp := h.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "style-src 'self'", "script-src 'self'", "base-uri 'none'",
			"form-action 'self'", "frame-ancestors 'none'"} {
			must.Contain(t, csp, want, path)
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") || strings.Contains(csp, "data:") {
			t.Errorf("%s: %q", path, csp)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" ||
			h.Get("X-Frame-Options") != "DENY" || h.Get("Cache-Control") == "" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

// A request that finds no free place waits for one, and is refused after a while.
func TestRequestsAreLimited(t *testing.T) {
	s := testServer(openStore(t))
	for range maxRunning {
		s.running <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := get(s, "/", asJSON, func(r *http.Request) { *r = *r.WithContext(ctx) })
	if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" ||
		len(s.running) != maxRunning {
		t.Errorf("%s %v", r.Status, r.Header)
	}
	<-s.running
	if r := get(s, "/"); r.StatusCode != http.StatusOK || len(s.running) != maxRunning-1 {
		t.Errorf("%s, %d running", r.Status, len(s.running))
	}
}

func TestPagesEndWithTheirTime(t *testing.T) {
	store := openStore(t)
	fillStore(t, store)
	s := testServer(store)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	// The place is taken at once, so that only the page meets the deadline.
	r := get(s, "/table?table=.", asJSON, func(r *http.Request) { *r = *r.WithContext(ctx) })
	if text := body(t, r); r.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "not complete") {
		t.Errorf("%s %s", r.Status, text)
	}
}

func TestClosedStoreIsSaidToBe(t *testing.T) {
	store := openStore(t)
	fillStore(t, store)
	s := testServer(store)
	must.Do(t, store.Close())
	for _, path := range []string{"/", "/table?table=."} {
		r := get(s, path, asJSON)
		if text := body(t, r); r.StatusCode != http.StatusServiceUnavailable ||
			!strings.Contains(text, "The store was closed.") || strings.Contains(text, "secret") {
			t.Errorf("%s: %s %s", path, r.Status, text)
		}
	}
}

// Errors of the file system name files by their last part, and the store by its name.
func TestErrorsNameNoPathOfTheMachine(t *testing.T) {
	store := openStore(t)
	s := testServer(store, Name("shop"))
	_, err := oribi.Open("/elsewhere/dir", &oribi.Options{ReadOnly: true})
	if text := s.clean(err); strings.Contains(text, "/elsewhere") && !strings.Contains(text, "oribi: /elsewhere/dir") {
		t.Error(text)
	}
	must.Do(t, store.Close())
	if _, err = store.Info(); strings.Contains(s.clean(err), "secret") || !strings.Contains(s.clean(err), "shop") {
		t.Error(s.clean(err))
	}
}
