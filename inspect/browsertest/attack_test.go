package browsertest

import (
	_ "embed"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"

	"github.com/oribi-db/oribi/inspect"
)

//go:embed attack.js
var attack string

const token = "0123456789abcdef0123456789abcdef"

// victim is a server of the pages of a store. It logs what it answers to requests, and at the path
// /attacker it shows the attacker's page: as the attacker's own server does before the attacker
// changes the address of its name to that of the victim.
type victim struct {
	url string

	mu      sync.Mutex
	answers []answered
}

type answered struct {
	what   string
	status int
	cookie bool // the browser has sent the cookie that stands for the token
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func newVictim(t testing.TB, wrap func(http.Handler) http.Handler) *victim {
	t.Helper()
	store, events, _ := openStore(t)
	v := &victim{}
	pages := wrap(inspect.Handler(store, inspect.Token(token), inspect.Log(events), inspect.Name("shop")))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/attacker" {
			attackersPage(w, r)
			return
		}
		what, cookie := fmt.Sprintf("%s %s %s from %q", r.Method, r.Host, r.URL.Path, r.Header.Get("Origin")),
			strings.Contains(r.Header.Get("Cookie"), "oribi_")
		s := &statusWriter{w, http.StatusOK}
		pages.ServeHTTP(s, r)
		if r.URL.Path == "/static/icon.svg" && r.Header.Get("Sec-Fetch-Site") == "same-origin" &&
			r.Host == r.Context().Value(http.LocalAddrContextKey).(net.Addr).String() {
			return // the icon of the victim's own page, which the browser loads when it likes
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		v.answers = append(v.answers, answered{what, s.status, cookie})
	}))
	t.Cleanup(server.Close)
	v.url = server.URL
	return v
}

func (v *victim) take() []answered {
	v.mu.Lock()
	defer v.mu.Unlock()
	list := v.answers
	v.answers = nil
	return list
}

func attackersPage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, "<!DOCTYPE html><title>attacker</title><link rel=icon href='data:,'><body>")
}

// with returns an address with another host.
func with(host, url string) string { return strings.Replace(url, "127.0.0.1", host, 1) }

// attacks are the places from which the victim is attacked. own is the victim's own port, under a
// name that leads to it.
func attacks(v *victim, other string) []struct {
	name, from, target string
	sameSite           bool // the browser sends the victim's cookie
} {
	return []struct {
		name, from, target string
		sameSite           bool
	}{
		{"other port", other + "/attacker", v.url + "/", true},
		{"other name of this machine", with("localhost", other) + "/attacker", v.url + "/", false},
		{"other site", with("evil.example", other) + "/attacker", v.url + "/", false},
		{"rebound name", with("evil.example", v.url) + "/attacker", with("evil.example", v.url) + "/", false},
	}
}

// TestPagesOfOtherOriginsReadNothing attacks the pages, from a browser that may read them.
func TestPagesOfOtherOriginsReadNothing(t *testing.T) {
	t.Parallel()
	v := newVictim(t, func(h http.Handler) http.Handler { return h })
	other := httptest.NewServer(http.HandlerFunc(attackersPage))
	t.Cleanup(other.Close)
	for _, a := range attacks(v, other.URL) {
		t.Run(a.name, func(t *testing.T) {
			b := newTab(t)
			b.quiet = true
			b.open(v.url + "/?token=" + token)
			if !strings.Contains(eval[string](b, "document.body.innerText"), "orders") {
				t.Fatal("the browser does not show the store")
			}
			v.take()
			b.open(a.from)
			for name, result := range eval[map[string]string](b, "("+attack+")("+quote(a.target)+")") {
				// What the answers of a rebound name say is the refusal itself.
				if refusal := strings.Contains(result, "does not answer to that name") ||
					strings.Contains(result, "Pages can only be read"); result != "refused" && !refusal &&
					!harmless(name, result) || strings.Contains(result, "customer") {
					t.Errorf("%s: %.300q", name, result)
				}
			}
			checkRefused(t, v.take(), a.sameSite)
		})
	}
}

// harmless reports whether a result tells the attacker nothing: that of a request with a method
// that is refused, made without reading the answer; checkRefused sees what was answered.
func harmless(name, result string) bool {
	return name == "fetch, opaque" && result == "basic" || name == "fetch, POST" && result == "basic"
}

// checkRefused checks what the server has answered to attacks.
func checkRefused(t *testing.T, list []answered, sameSite bool) {
	t.Helper()
	methods, cookies := map[string]int{}, 0
	for _, a := range list {
		method, _, _ := strings.Cut(a.what, " ")
		methods[method]++
		if read := method == http.MethodGet; read && a.status != http.StatusForbidden &&
			a.status != http.StatusMisdirectedRequest || !read && a.status != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", a.what, a.status)
		}
		if a.cookie {
			cookies++
		}
	}
	if methods["GET"] < 8 || methods["POST"] < 2 {
		t.Errorf("the server has seen only %v", methods)
	}
	if sameSite != (cookies > 0) {
		t.Errorf("the browser has sent the cookie in %d of %d requests", cookies, len(list))
	}
}

// TestAttacksSucceedWithoutDefenses shows that the attacks would work if nothing was checked.
func TestAttacksSucceedWithoutDefenses(t *testing.T) {
	t.Parallel()
	v := newVictim(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Host, r.Method = "127.0.0.1", http.MethodGet
			r.Header.Del("Sec-Fetch-Site")
			origin := r.Header.Get("Origin")
			r.Header.Del("Origin")
			r.Header.Set("Authorization", "Bearer "+token)
			record := httptest.NewRecorder()
			h.ServeHTTP(record, r)
			for _, name := range []string{"Content-Type", "Location"} {
				w.Header().Set(name, record.Header().Get(name))
			}
			if origin != "" {
				w.Header().Set("Access-Control-Allow-Origin", origin)
				w.Header().Set("Access-Control-Allow-Credentials", "true")
			}
			w.WriteHeader(record.Code)
			w.Write(record.Body.Bytes())
		})
	})
	other := httptest.NewServer(http.HandlerFunc(attackersPage))
	t.Cleanup(other.Close)
	for _, a := range attacks(v, other.URL) {
		b := newTab(t)
		b.quiet = true
		b.open(a.from)
		results := eval[map[string]string](b, "("+attack+")("+quote(a.target)+")")
		want := []string{"fetch", "fetch, opaque", "fetch, POST", "script", "style", "image"}
		if a.name == "rebound name" {
			want = append(want, "frame", "form, GET", "form, POST", "window")
		}
		for _, name := range want {
			if results[name] == "refused" || results[name] == "time" || results[name] == "" {
				t.Errorf("%s: %s: %q", a.name, name, results[name])
			}
		}
		if !strings.Contains(results["fetch"], "customer") {
			t.Errorf("%s: a fetch reads %.200q", a.name, results["fetch"])
		}
	}
}

// TestTokenLeavesTheAddress opens the address with the token.
func TestTokenLeavesTheAddress(t *testing.T) {
	t.Parallel()
	root, _ := serve(t, inspect.Token(token))
	b := newTab(t)
	b.open(root + "/table?table=orders&token=" + token)
	if got := eval[string](b, "location.href + document.cookie + document.referrer + "+
		"document.documentElement.outerHTML"); strings.Contains(got, token) ||
		!strings.HasPrefix(got, root+"/table?table=orders") {
		t.Errorf("the page knows the token: %.100q", got)
	}
	if cookie := eval[string](b, "document.cookie"); cookie != "" {
		t.Errorf("scripts read the cookie %q", cookie)
	}
	for _, e := range call(b, page.GetNavigationHistory, cdp.Empty{}).Entries {
		if strings.Contains(e.URL, token) {
			t.Errorf("the history has %s", e.URL)
		}
	}
	cookies := call(b, network.GetCookies, network.GetCookiesParams{}).Cookies
	if len(cookies) != 1 || !cookies[0].HTTPOnly || cookies[0].SameSite != "Strict" ||
		strings.Contains(cookies[0].Value, token) {
		t.Errorf("%d cookies, the first %s", len(cookies), quote(cookies))
	}
	b.click(`.tabs a[href^="/rows?"]`)
	if got := eval[string](b, "location.pathname"); got != "/rows" {
		t.Errorf("at %s", got)
	}
}
