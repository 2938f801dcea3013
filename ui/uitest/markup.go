package uitest

// Markup is a hostile name or message: it closes an attribute, a tag and a comment, adds an element, and changes the direction of text.
const Markup = "\"'>--></script><hostile onclick=alert(1)>`javascript:alert(1)\u202e\u009b"
