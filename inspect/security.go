package inspect

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// policy is the Content-Security-Policy of everything that the handler serves: styles, scripts and
// images are files of the handler, nothing is inline, and no other site may show a page in a frame.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// setHeaders sets the headers that every answer has.
func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept")
}

// guard decides which requests are answered.
type guard struct {
	hosts        map[string]bool
	prefix       string
	token        string
	name, cookie string // of the cookie that replaces the token; its value does not reveal it
}

func newGuard(o *options) guard {
	g := guard{hosts: o.hosts, prefix: o.prefix, token: o.token}
	if g.token != "" {
		// Browsers send a cookie to all ports of a host, so the cookies of several servers need
		// different names.
		name, value := sha256.Sum256([]byte("name "+g.token)), sha256.Sum256([]byte("value "+g.token))
		g.name, g.cookie = "oribi_"+hex.EncodeToString(name[:8]), hex.EncodeToString(value[:])
	}
	return g
}

// check returns why a request is refused, nil if it is not. A request with the right token it
// answers with a cookie and the Location of the same page without the token.
func (g *guard) check(w http.ResponseWriter, r *http.Request) *problem {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		return &problem{status: http.StatusMethodNotAllowed, text: "Pages can only be read.", hint: "Use GET or HEAD."}
	case len(r.URL.RequestURI()) > maxURLBytes:
		return &problem{status: http.StatusRequestURITooLong, text: "The address is too long."}
	case !g.knows(r):
		return &problem{status: http.StatusMisdirectedRequest, text: "This server does not answer to that name.",
			hint: "Use the address that it has printed, or 127.0.0.1 with its port."}
	case !sameOrigin(r):
		return &problem{status: http.StatusForbidden, text: "Another site has made this request.",
			hint: "Paste the address into the address bar of the browser."}
	}
	return g.admit(w, r)
}

// knows reports whether the request is for a name of this server. An attacker's page can send
// requests here from a browser by a name of the attacker whose address is changed after the page
// was loaded, but not by an address.
func (g *guard) knows(r *http.Request) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if host == "localhost" || g.hosts[host] {
		return true
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	if addr.Unmap().IsLoopback() {
		return true
	}
	// A server at an address other than loopback is reached by this address, or by an address that
	// a router translates to it.
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && !local.IP.IsLoopback()
}

// sameOrigin reports whether the request comes from a page of this server or from none.
func sameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return false
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return false
		}
	}
	return true
}

// admit checks the token or the cookie.
func (g *guard) admit(w http.ResponseWriter, r *http.Request) *problem {
	if g.token == "" {
		return nil
	}
	query := r.URL.Query()
	if given := query.Get("token"); equal(given, g.token) {
		http.SetCookie(w, &http.Cookie{Name: g.name, Value: g.cookie, Path: g.prefix + "/", HttpOnly: true,
			SameSite: http.SameSiteStrictMode})
		query.Del("token")
		to := url.URL{Path: r.URL.Path, RawQuery: query.Encode()}
		w.Header().Set("Location", to.String())
		return nil
	}
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && equal(bearer, g.token) {
		return nil
	}
	for _, c := range r.CookiesNamed(g.name) {
		if equal(c.Value, g.cookie) {
			return nil
		}
	}
	return &problem{status: http.StatusForbidden, text: "This address needs the token of this server.",
		hint: "Open the address that the program has printed when it began."}
}

func equal(given, want string) bool {
	return subtle.ConstantTimeCompare([]byte(given), []byte(want)) == 1
}
