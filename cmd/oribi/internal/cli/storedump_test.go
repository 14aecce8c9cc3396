package cli

import (
	"bytes"
	"testing"

	"github.com/oribi-db/oribi"
)

func TestStoreDumpNextToAWriter(t *testing.T) {
	dir := t.TempDir()
	store, err := oribi.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var out, errs bytes.Buffer
	a := &app{stdout: &stdout{out: &out}, stderr: &errs}
	code := a.run(t.Context(), []string{"store", "dump", dir})
	if code != exitDone || out.Len() == 0 || errs.Len() > 0 {
		t.Errorf("exit code %d, stdout of %d bytes, stderr %q", code, out.Len(), errs.String())
	}
}
