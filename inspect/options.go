package inspect

import "strings"

// Option is an option of Handler. The zero Option has no effect.
type Option struct{ apply func(*options) }

// options are the options of one handler.
type options struct {
	name   string
	prefix string          // "" or "/…" without a slash at its end
	token  string          // "": none
	hosts  map[string]bool // lower case
	events *Events         // nil: not recorded
}

// Name is the name of the store on the pages, instead of "store". It should not be a path: pages
// contain no path of the machine.
func Name(name string) Option {
	return Option{func(o *options) { o.name = name }}
}

// Prefix is the path below which the handler is served, such as "/oribi". Default: the root.
func Prefix(path string) Option {
	path = strings.Trim(path, "/")
	return Option{func(o *options) {
		if o.prefix = ""; path != "" {
			o.prefix = "/" + path
		}
	}}
}

// Token makes the handler require a token: in the first request as "?token=…", which it answers
// with a cookie and a redirect to the same page without it, or in each request as "Authorization:
// Bearer …". It should be random, of at least 128 bits. Default: none is required.
func Token(token string) Option {
	return Option{func(o *options) { o.token = token }}
}

// Hosts are names, without ports, for which the handler answers requests, in addition to loopback
// addresses and "localhost".
func Hosts(names ...string) Option {
	return Option{func(o *options) {
		for _, name := range names {
			o.hosts[strings.ToLower(name)] = true
		}
	}}
}

// Log makes the page Timeline show events: what flushes and compactions did.
func Log(events *Events) Option {
	return Option{func(o *options) { o.events = events }}
}

func newOptions(opts []Option) options {
	o := options{name: "store", hosts: map[string]bool{}}
	for _, opt := range opts {
		if opt.apply != nil {
			opt.apply(&o)
		}
	}
	return o
}
