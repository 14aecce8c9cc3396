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
	store, err := oribi.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() }) // the writer stays
	sc, err := schema.New([]schema.Column{{Name: "k", Type: schema.Int64}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.CreateTable("orders", sc); err != nil {
		t.Fatal(err)
	}
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
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
	address, err = url.Parse(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
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
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	r, err := client.Get(address.String())
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil || r.StatusCode != http.StatusOK || r.Request.URL.RawQuery != "" ||
		!strings.Contains(string(page), "my shop") || !strings.Contains(string(page), "orders") ||
		strings.Contains(string(page), token) || strings.Contains(string(page), os.TempDir()) {
		t.Errorf("%v %s %s: %.3000s", err, r.Status, r.Request.URL, page)
	}
	if r, err := http.Get("http://" + address.Host + "/"); err != nil || r.StatusCode != http.StatusForbidden {
		t.Errorf("without the token: %v %v", r, err)
	}
	if code, errs := end(); code != exit.Done || errs != "" {
		t.Errorf("exit code %d, %q", code, errs)
	}
	if _, err := http.Get(address.String()); err == nil {
		t.Error("the server still answers")
	}
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
	store, err := oribi.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
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
		errs, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
		if err != nil {
			t.Fatal(err)
		}
		code := Run(t.Context(), append([]string{"inspect"}, c.args...), nil, os.Stdout, errs)
		text, _ := os.ReadFile(errs.Name())
		if code != c.code || !strings.Contains(string(text), c.text) {
			t.Errorf("%v: exit code %d, want %d: %s", c.args, code, c.code, text)
		}
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
	if err := os.WriteFile(plain, []byte(event(1)), 0o666); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(event(1)))
	if err := errors.Join(w.Close(), os.WriteFile(packed, b.Bytes(), 0o666)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{plain, packed, "-"} {
		stdin, err := os.Open(plain)
		if err != nil {
			t.Fatal(err)
		}
		address, end := inspectedWith(t, stdin, "--events", name)
		if jobs := jobsOf(t, address); jobs != 1 {
			t.Errorf("%s: the timeline has %d jobs, want 1", name, jobs)
		}
		if name == plain {
			if err := os.WriteFile(plain, []byte(event(1)+event(2)), 0o666); err != nil {
				t.Fatal(err)
			}
			if jobs := jobsOf(t, address); jobs != 2 {
				t.Errorf("%s: the timeline then has %d jobs, want 2", name, jobs)
			}
			if err := os.WriteFile(plain, []byte(event(1)), 0o666); err != nil {
				t.Fatal(err)
			}
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
	r, err := http.NewRequest(http.MethodGet, "http://"+address.Host+"/timeline", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Authorization", "Bearer "+address.Query().Get("token"))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var page struct {
		View struct {
			Source string
			Jobs   []struct{ Kind string }
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&page); err != nil || page.View.Source != "file" {
		t.Errorf("%v: the events come from %q", err, page.View.Source)
	}
	return len(page.View.Jobs)
}
