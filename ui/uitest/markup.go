package uitest

// Markup is what a hostile user writes into a name or a message: it leaves an attribute, a tag and a comment, makes an element, and turns
// the direction of writing.
const Markup = "\"'>--></script><hostile onclick=alert(1)>`javascript:alert(1)\u202e\u009b"
