package storecmd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/inspect"
	"github.com/oribi-db/oribi/internal/celltext"
)

// Limits of the server of inspect. The handler limits the pages.
const (
	inspectHeaderBytes = 96 << 10
	inspectConnections = 64
	inspectIdle        = 2 * time.Minute
	inspectHeaderTime  = 5 * time.Second
	inspectReadTime    = 10 * time.Second
	inspectWriteTime   = 30 * time.Second
	inspectEndTime     = 2 * time.Second // for pages that are being sent when the command ends
)

// Inspect is the verb "oribi inspect".
func Inspect(a *console.Console) *cobra.Command {
	var listen, events string
	c := verb.New(a, "inspect DIR", "Show a store as pages in a browser, next to a writer, until Ctrl-C",
		func(cmd *cobra.Command, args []string) error {
			if err := checkListen(listen); err != nil {
				return exit.Usage(fmt.Errorf("--listen: %w", err))
			}
			var log *inspect.Events
			if events != "" {
				var err error
				if log, err = openEvents(cmd.Context(), a, events); err != nil {
					return err
				}
			}
			return access.WithStore(args[0], access.Reading, func(store *oribi.Store) error {
				return serveStore(cmd.Context(), a, store, args[0], listen, log)
			})
		})
	c.Long = c.Short + `.

The command prints a URL with a random token: open it in a browser on this machine. Pages only read,
and follow the store next to a writer. They need no network and no account. Each is also available
as JSON, with the header "Accept: application/json"; scripts pass the token as "Authorization: Bearer
TOKEN". docs/inspect.md describes the pages.

The timeline shows flushes and compactions from an event log, which a program records with
compaction.NewEventLog as its Options.Listener.`
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:0",
		"address and port; port 0 is a free one. Any other than a loopback address lets other machines read the store")
	c.Flags().StringVar(&events, "events", "", "event log of the store, for the timeline")
	return c
}

// checkListen returns an error for an address that is not HOST:PORT.
func checkListen(listen string) error {
	_, port, err := net.SplitHostPort(listen)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("%q is not an address with a port, such as 127.0.0.1:8080", listen)
	}
	return nil
}

// openEvents reads a log of events. That in a plain file is read on while it grows.
func openEvents(ctx context.Context, a *console.Console, name string) (*inspect.Events, error) {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && name != "-" && filepath.Ext(name) != ".gz" {
		return inspect.OpenEvents(name)
	}
	in, err := a.OpenInput(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return inspect.ReadEvents(ctx, in, name)
}

// serveStore serves the pages until ctx is canceled, which is the end that the user wants.
func serveStore(
	ctx context.Context, a *console.Console, store *oribi.Store, dir, listen string, events *inspect.Events,
) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return exit.With(exit.Failed, err)
	}
	token := rand.Text()
	options := []inspect.Option{inspect.Name(storeName(dir)), inspect.Token(token)}
	host, _, _ := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); host != "" && ip == nil {
		options = append(options, inspect.Hosts(host))
	}
	if events != nil {
		options = append(options, inspect.Log(events))
	}
	server := &http.Server{ // its messages, about single connections, are dropped
		Handler: inspect.Handler(store, options...), ErrorLog: log.New(io.Discard, "", 0),
		MaxHeaderBytes:    inspectHeaderBytes,
		ReadHeaderTimeout: inspectHeaderTime, ReadTimeout: inspectReadTime,
		WriteTimeout: inspectWriteTime, IdleTimeout: inspectIdle,
	}
	address := listener.Addr().(*net.TCPAddr)
	if !address.IP.IsLoopback() {
		fmt.Fprintf(a.Stderr, "warning: other machines can reach %s, and the connection is not encrypted: who sees "+
			"the URL can read every row\n", address)
	}
	if err := a.Printf("%s\n", inspectURL(host, address, token)); err != nil {
		return errors.Join(err, listener.Close())
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(limitConnections(listener, inspectConnections)) }()
	select {
	case err := <-served:
		return exit.With(exit.Failed, err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.Background(), inspectEndTime)
	defer cancel()
	if server.Shutdown(end) != nil {
		server.Close()
	}
	<-served
	return nil
}

// storeName returns the last part of the path of a store, which names it on the pages.
func storeName(dir string) string {
	if full, err := filepath.Abs(dir); err == nil {
		dir = full
	}
	return celltext.Printable(filepath.Base(dir))
}

// inspectURL returns the address of the first page. A server at all addresses is reached by a
// loopback one.
func inspectURL(host string, address *net.TCPAddr, token string) string {
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(host, fmt.Sprint(address.Port)), Path: "/",
		RawQuery: url.Values{"token": {token}}.Encode()}
	return u.String()
}

// limitConnections makes a listener close connections above a number.
func limitConnections(l net.Listener, most int) net.Listener {
	return &limitedListener{Listener: l, slots: make(chan struct{}, most)}
}

type limitedListener struct {
	net.Listener
	slots chan struct{}
}

func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &limitedConn{Conn: c, release: sync.OnceFunc(func() { <-l.slots })}, nil
		default:
			c.Close()
		}
	}
}

type limitedConn struct {
	net.Conn
	release func()
}

func (c *limitedConn) Close() error {
	c.release()
	return c.Conn.Close()
}
