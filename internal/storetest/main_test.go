package storetest

import (
	"os"
	"testing"

	"github.com/oribi-db/oribi/internal/maintest"
	"github.com/oribi-db/oribi/internal/prooftest/followers"
)

func TestMain(m *testing.M) {
	if followers.Child() {
		return
	}
	os.Exit(maintest.Run(m))
}
