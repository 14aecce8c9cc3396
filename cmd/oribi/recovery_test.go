package main

import (
	"bytes"
	"encoding/json"
	"github.com/oribi-db/oribi/internal/must"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recovery is the part of "store info" about the replay.
type recovery struct {
	Clean        bool  `json:"clean"`
	Frames       int64 `json:"frames"`
	TornBytes    int64 `json:"torn_bytes"`
	RepairedBits int64 `json:"repaired_bits"`
}

func recoveryOf(t *testing.T, dir string) recovery {
	t.Helper()
	var info struct{ Recovery recovery }
	must.Do(t, json.Unmarshal([]byte(succeed(t, nil, "store", "info", dir)), &info))
	return info.Recovery
}

// killed applies batches [from, to) in a process that it kills after the last acknowledgement.
func killed(t *testing.T, dir string, from, to int) {
	t.Helper()
	a := startApply(t, dir)
	for n := from; n < to; n++ {
		must.Get(a.in.Write([]byte(line(n))))(t)
	}
	if n := len(a.acknowledged(t, to-from)); n != to-from {
		t.Fatalf("%d acknowledged, want %d; %s", n, to-from, a.errs.String())
	}
	must.Do(t, a.Process.Kill())
	a.Wait()
}

// editLog changes the newest segment of the log.
func editLog(t *testing.T, dir string, edit func(b []byte) []byte) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "wal", "*.wal"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no log: %v", err)
	}
	name := names[len(names)-1]
	b, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, edit(b), 0o600)
	}
	must.Do(t, err)
}

// "store info" reports what a replay found until a writer has repaired it: an unclean end, a
// flipped bit, a torn end, of which the writer keeps a copy.
func TestInfoReportsReplayResult(t *testing.T) {
	t.Parallel()
	dir := numbers(t)
	must.Equal(t, recoveryOf(t, dir), recovery{Clean: true})
	killed(t, dir, 0, 5)
	must.Equal(t, recoveryOf(t, dir), recovery{Frames: 5})
	editLog(t, dir, func(b []byte) []byte {
		b[bytes.Index(b, []byte("odd"))] ^= 4
		return b
	})
	for range 2 {
		must.Equal(t, recoveryOf(t, dir), recovery{Frames: 5, RepairedBits: 1})
	}
	if out, _, code := run(t, nil, "store", "verify", dir); code != 3 || !strings.Contains(out, "bit 2 is flipped") {
		t.Errorf("verify: exit code %d: %s", code, out)
	}
	killed(t, dir, 5, 8)
	must.Equal(t, recoveryOf(t, dir), recovery{Frames: 8}, "after a writer that was killed")
	editLog(t, dir, func(b []byte) []byte { return b[:bytes.LastIndex(b, []byte("odd"))+1] })
	found := recoveryOf(t, dir)
	if found.TornBytes == 0 || found != (recovery{Frames: 7, TornBytes: found.TornBytes}) {
		t.Errorf("with a torn end: %+v", found)
	}
	succeed(t, nil, "table", "flush", dir, "t")
	if got := recoveryOf(t, dir); !got.Clean || got.TornBytes != 0 {
		t.Errorf("after a writer: %+v", got)
	}
	torn := must.Get(filepath.Glob(filepath.Join(dir, "wal", "*.torn")))(t)
	must.Equal(t, len(torn), 1)
	if kept, err := os.Stat(torn[0]); err != nil || kept.Size() != found.TornBytes {
		t.Errorf("%d bytes are kept, %d were torn: %v", kept.Size(), found.TornBytes, err)
	}
	must.Equal(t, succeed(t, nil, "table", "count", dir, "t"), "14\n")
	must.Equal(t, succeed(t, nil, "store", "verify", dir), "ok\n")
}
