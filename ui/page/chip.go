package page

import "scute.dev/cmd/ctl/kit"

type chip struct {
	kit.Tone
	Word string
}

func newChip[W ~string](word W) chip { return chip{kit.ToneOf(string(word)), string(word)} }
