package hfile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
)

// checkStages opens the file in data, reads all entries, and verifies it. It returns the first
// error with its stage.
func checkStages(data []byte) (stage string, err error) {
	r, err := Open(&block.Memory{Bytes: data}, ReaderOptions{})
	if err != nil {
		return "open", err
	}
	for _, err := range r.Cells() {
		if err != nil {
			return "scan", err
		}
	}
	return "verify", r.Verify(context.Background())
}

func TestMalformedFilesAreRefused(t *testing.T) {
	dir := filepath.Join(corpustest.Dir(t), "golden", "hfile", "malformed")
	stages := []string{"open", "scan", "verify"}
	n := 0
	for s := bufio.NewScanner(bytes.NewReader(corpustest.Read(t,
		filepath.Join(dir, "manifest.jsonl")))); s.Scan(); n++ {
		var f struct {
			Name, What, Trigger string
			Kind                []string
		}
		must.Do(t, json.Unmarshal(s.Bytes(), &f))
		if f.Trigger == "probe" {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			stage, err := checkStages(corpustest.Read(t, filepath.Join(dir, f.Name)))
			must.Refuse(t, err, f.What)
			for _, late := range stages[1+indexOf(stages, f.Trigger):] {
				if stage == late {
					t.Errorf("%s: refused at %s, want %s: %v", f.What, stage, f.Trigger, err)
				}
			}
			corrupt, unsupported := errors.Is(err, ErrCorrupt), errors.Is(err, ErrUnsupported)
			kinds := strings.Join(f.Kind, " ")
			if !(corrupt && strings.Contains(kinds, "Corruption") ||
				unsupported && strings.Contains(kinds, "NotSupported")) {
				t.Errorf("%s: %v, want %v", f.What, err, f.Kind)
			}
			if strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "hfile: ") {
				t.Errorf("message %q", err)
			}
			t.Log(stage, err)
		})
	}
	if n < 161 {
		t.Errorf("%d malformed files", n)
	}
}

func indexOf(list []string, s string) int {
	for i, l := range list {
		if l == s {
			return i
		}
	}
	return len(list) - 1
}

func TestVerifyGolden(t *testing.T) {
	supported(t, func(t *testing.T, g goldenFile, r *Reader) {
		must.Do(t, r.Verify(context.Background()))
	})
}
