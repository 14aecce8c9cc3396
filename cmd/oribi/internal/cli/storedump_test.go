package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
)

func TestStoreDumpIsRefusedNextToAWriter(t *testing.T) {
	dir := t.TempDir()
	store, err := oribi.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	dump := func() int {
		return (&app{stdout: &stdout{out: &out}, stderr: &errs}).run(t.Context(), []string{"store", "dump", dir})
	}
	if code := dump(); code != exitLocked || out.Len() > 0 || !strings.Contains(errs.String(), "locked") {
		t.Errorf("next to a writer: exit code %d, stdout %q, stderr %q", code, out.String(), errs.String())
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	errs.Reset()
	if code := dump(); code != exitDone || out.Len() == 0 || errs.Len() > 0 {
		t.Errorf("after it: exit code %d, stdout of %d bytes, stderr %q", code, out.Len(), errs.String())
	}
}
