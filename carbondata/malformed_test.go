package carbondata

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/corpustest"
)

// filtered reads the rows that a filter selects, or some others without one in the corpus.
func filtered(t *testing.T, table *Table, text json.RawMessage) error {
	f := NotNull(table.Schema()[0].Name)
	if text != nil {
		var err error
		if f, err = ParseFilter(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range table.Rows(t.Context(), ScanOptions{Filter: f}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestMalformedFoldersAreRefused opens each folder, reads all rows, reads rows with a filter, and
// verifies it.
func TestMalformedFoldersAreRefused(t *testing.T) {
	dir := filepath.Join(goldenDir(t), "malformed")
	lines := corpustest.Lines(t, filepath.Join(dir, "manifest.jsonl"))
	if len(lines) < 101 {
		t.Errorf("%d malformed folders", len(lines))
	}
	for _, line := range lines {
		var f struct {
			Name, What, Base, Required, Kind, Trigger string
			Filter                                    json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		t.Run(f.Name, func(t *testing.T) {
			stage := "open"
			table, err := Open(filepath.Join(dir, f.Name))
			if err == nil {
				defer table.Close()
				stage = "scan"
				for _, rowErr := range table.Rows(context.Background(), ScanOptions{}) {
					if err = rowErr; err != nil {
						break
					}
				}
			}
			if err == nil {
				stage = "filter"
				err = filtered(t, table, f.Filter)
			}
			if err == nil {
				stage = "filter"
				err = table.Verify(context.Background())
			}
			t.Log(stage, err)
			if err == nil {
				if f.Required == "error" {
					t.Errorf("%s: accepted", f.What)
				}
				return
			}
			want := ErrCorrupt
			if f.Kind == "NotSupported" {
				want = ErrUnsupported
			}
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", f.What, err, want)
			}
			if stages := []string{"open", "scan", "filter"}; slices.Index(stages, stage) > slices.Index(stages, f.Trigger) {
				t.Errorf("%s: refused at %s: %v", f.What, stage, err)
			}
			if strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "carbondata: ") {
				t.Errorf("message %q", err)
			}
		})
	}
}

// TestVerifyFindsRepeats has a page of two equal strings, the second a copy of the first in one
// piece or in two, of which the second is from offset 0.
func TestVerifyFindsRepeats(t *testing.T) {
	text := "\x10\x1c\x00\x00\x00\x04abcd" // 16 bytes; a literal of 8
	page := func() anyStruct {
		return anyStruct{pageMeta: anyStruct{metaCodec: i32(0), metaCompressor: []byte(nameSnappy)}, pageEncoders: anyListOf(i32(int(encVarchar)))}
	}
	for copies, bad := range map[string]bool{"\x11\x08": false, "\x01\x08\x01\x00": true} {
		data := wideFile(1, 2, anyStruct{columnType: i32(int(Varchar)), columnDimension: true}, page(), []byte(text+copies))
		for row, err := range openBytes(t, data).Rows(t.Context()) {
			if err != nil || row[0] != "abcd" {
				t.Errorf("%x: %v %v", copies, row, err)
			}
		}
		err := verifyFile(data)
		if got := err != nil && strings.Contains(err.Error(), "offset 0"); got != bad || bad && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%x: %v", copies, err)
		}
	}
}
