package sessions

import (
	"sync"

	"cellblock/kernels"
)

// spoken is what kernels last said of their languages, by the languages' names here.
type spoken struct {
	mu    sync.Mutex
	infos map[string]kernels.LanguageInfo
}

func (s *spoken) note(language string, info kernels.KernelInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.infos == nil {
		s.infos = map[string]kernels.LanguageInfo{}
	}
	s.infos[language] = info.LanguageInfo
}

// LanguageInfo is what the last kernel of a language that came up in this process said of it: empty while there was none.
func (m *Manager) LanguageInfo(language string) kernels.LanguageInfo {
	m.spoken.mu.Lock()
	defer m.spoken.mu.Unlock()
	return m.spoken.infos[language]
}
