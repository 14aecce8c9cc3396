package console

import (
	"os"
	"testing"

	"github.com/oribi-db/oribi/internal/maintest"
)

func TestMain(m *testing.M) { os.Exit(maintest.Run(m)) }
