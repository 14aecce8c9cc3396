package cli

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// inspected makes a store with a table and runs "oribi inspect" until the test ends. It returns the
// printed URL and a function that ends the command and returns its exit code and its messages.
func inspected(t *testing.T, flags ...string) (address *url.URL, end func() (code int, errs string)) {
	t.Helper()
	return inspectedWith(t, nil, flags...)
}

// inspectedWith is inspected with a standard input.
func inspectedWith(
	t *testing.T, stdin *os.File, flags ...string,
) (address *url.URL, end func() (code int, errs string)) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "my shop")
	store := must.Get(oribi.Open(dir, nil))(t)
	t.Cleanup(func() { store.Close() }) // the writer stays
	sc := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64}}, 1))(t)
	must.Get(store.CreateTable("orders", sc))(t)
	in, out := must.Get2(os.Pipe())(t)
	errs := must.Get(os.Create(filepath.Join(t.TempDir(), "stderr")))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		code := Run(ctx, append([]string{"inspect", dir}, flags...), stdin, out, errs)
		out.Close()
		ended <- code
	}()
	end = func() (int, string) {
		cancel()
		code := <-ended
		text, _ := os.ReadFile(errs.Name())
		rest, _ := io.ReadAll(in)
		if len(rest) > 0 {
			t.Errorf("stdout also has %q", rest)
		}
		ended <- code
		return code, string(text)
	}
	t.Cleanup(func() { end() })
	line, err := bufio.NewReader(&oneByte{in}).ReadString('\n')
	if err != nil {
		code, text := end()
		t.Fatalf("%v: exit code %d, %s", err, code, text)
	}
	address = must.Get(url.Parse(strings.TrimSpace(line)))(t)
	return address, end
}

// oneByte reads one byte at a time, so that no byte after the line is lost.
type oneByte struct{ io.Reader }

func (r *oneByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:1]) }

func TestInspectServesUntilItIsInterrupted(t *testing.T) {
	address, end := inspected(t)
	token := address.Query().Get("token")
	if address.Hostname() != "127.0.0.1" || len(token) < 26 {
		t.Errorf("%s", address)
	}
	jar := must.Get(cookiejar.New(nil))(t)
	client := &http.Client{Jar: jar}
	r := must.Get(client.Get(address.String()))(t)
	page, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil || r.StatusCode != http.StatusOK || r.Request.URL.RawQuery != "" ||
		!strings.Contains(string(page), "my shop") || !strings.Contains(string(page), "orders") ||
		strings.Contains(string(page), token) || strings.Contains(string(page), os.TempDir()) {
		t.Errorf("%v %s %s: %.3000s", err, r.Status, r.Request.URL, page)
	}
	must.Equal(t, must.Get(http.Get("http://"+address.Host+"/"))(t).StatusCode, http.StatusForbidden)
	if code, errs := end(); code != exit.Done || errs != "" {
		t.Errorf("exit code %d, %q", code, errs)
	}
	must.Refuse(t, must.Err(http.Get(address.String())), "the server still answers")
}

func TestInspectWarnsAboutOtherMachines(t *testing.T) {
	address, end := inspected(t, "--listen", ":0")
	if code, errs := end(); code != exit.Done || !strings.HasPrefix(errs, "warning: other machines can reach ") ||
		address.Hostname() != "127.0.0.1" {
		t.Errorf("exit code %d, %q, %s", code, errs, address)
	}
}

func TestInspectRefusesWrongFlags(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	store := must.Get(oribi.Open(dir, nil))(t)
	store.Close()
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{dir, "--listen", "localhost"}, exit.Misused, "--listen"},
		{[]string{dir, "--listen", "127.0.0.1:http:1"}, exit.Misused, "--listen"},
		{[]string{dir, "--listen", "127.0.0.1:99999"}, exit.Misused, "--listen"},
		{[]string{dir, "--listen", "192.0.2.1:0"}, exit.Failed, "192.0.2.1"},
		{[]string{dir, "--events", filepath.Join(dir, "none")}, exit.Failed, "none"},
		{[]string{filepath.Join(dir, "none")}, exit.Missing, "none"},
		{nil, exit.Misused, "DIR is missing"},
	} {
		errs := must.Get(os.Create(filepath.Join(t.TempDir(), "stderr")))(t)
		code := Run(t.Context(), append([]string{"inspect"}, c.args...), nil, os.Stdout, errs)
		text, _ := os.ReadFile(errs.Name())
		must.Equal(t, code, c.code, c.args)
		must.Contain(t, string(text), c.text, c.args)
	}
}

// An event log is read from a file, a compressed one, and standard input. The first is read on
// while it grows.
func TestInspectReadsEventLogs(t *testing.T) {
	dir := t.TempDir()
	event := func(job int) string {
		return fmt.Sprintf(`{"time":"2026-11-23T07:00:0%d.25Z","job":%[1]d,"kind":"flush","table":"orders","why":"the MemRowSet is flushed","rows_written":2}`+"\n", job)
	}
	plain, packed := filepath.Join(dir, "events"), filepath.Join(dir, "events.gz")
	must.Do(t, os.WriteFile(plain, []byte(event(1)), 0o666))
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(event(1)))
	must.Do(t, errors.Join(w.Close(), os.WriteFile(packed, b.Bytes(), 0o666)))
	for _, name := range []string{plain, packed, "-"} {
		stdin := must.Get(os.Open(plain))(t)
		address, end := inspectedWith(t, stdin, "--events", name)
		must.Equal(t, jobsOf(t, address), 1, name)
		if name == plain {
			must.Do(t, os.WriteFile(plain, []byte(event(1)+event(2)), 0o666))
			must.Equal(t, jobsOf(t, address), 2, name)
			must.Do(t, os.WriteFile(plain, []byte(event(1)), 0o666))
		}
		if code, errs := end(); code != exit.Done || errs != "" {
			t.Errorf("%s: exit code %d, %q", name, code, errs)
		}
		stdin.Close()
	}
}

// jobsOf returns the number of jobs on the timeline.
func jobsOf(t *testing.T, address *url.URL) int {
	t.Helper()
	r := must.Get(http.NewRequest(http.MethodGet, "http://"+address.Host+"/timeline", nil))(t)
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Authorization", "Bearer "+address.Query().Get("token"))
	answer := must.Get(http.DefaultClient.Do(r))(t)
	defer answer.Body.Close()
	var page struct {
		View struct {
			Source string
			Jobs   []struct{ Kind string }
		}
	}
	must.Do(t, json.NewDecoder(answer.Body).Decode(&page))
	must.Equal(t, page.View.Source, "file", "the source of the events")
	return len(page.View.Jobs)
}
